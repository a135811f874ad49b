// The search over all tables, from every page: `/` or Ctrl+K goes to it.

import { useQuery } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useDeferredValue, useEffect, useId, useRef, useState } from "react";
import * as queries from "../api/queries";
import { classes, HealthBadge, Name } from "./ui";

export function Search() {
  const [words, setWords] = useState("");
  const [isOpen, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const asked = useDeferredValue(words.trim());
  const query = useQuery(queries.found(asked));
  const navigate = useNavigate();
  const input = useRef<HTMLInputElement>(null);
  const id = useId();
  const items = asked ? (query.data?.items ?? []) : [];
  const last = items.length; // the entry that shows all of them

  useEffect(() => {
    const focus = (event: KeyboardEvent) => {
      const isTyping =
        event.target instanceof Element && event.target.closest("input, textarea, select, dialog") !== null;
      if ((event.key === "/" && !isTyping) || (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey))) {
        event.preventDefault();
        input.current?.focus();
      }
    };
    addEventListener("keydown", focus);
    return () => removeEventListener("keydown", focus);
  }, []);

  const go = (index: number) => {
    const item = items[index];
    setOpen(false);
    if (item) void navigate({ to: "/tables/$uuid", params: { uuid: item.uuid }, search: { catalog: item.catalog } });
    else if (asked) void navigate({ to: "/", search: { search: asked } });
  };
  const isShown = isOpen && asked !== "" && query.data !== undefined;
  return (
    <search
      className="relative min-w-40 flex-1 lg:flex-none"
      onBlur={(event) => {
        if (!event.currentTarget.contains(event.relatedTarget)) setOpen(false);
      }}
    >
      <input
        ref={input}
        role="combobox"
        aria-label="Find a table"
        aria-expanded={isShown}
        aria-controls={`${id}-list`}
        aria-activedescendant={isShown ? `${id}-${at}` : undefined}
        aria-autocomplete="list"
        autoComplete="off"
        placeholder="Find a table  ( / )"
        className="w-full rounded-md border border-soft bg-card px-2 py-1 text-sm placeholder:text-soft"
        value={words}
        onChange={(event) => {
          setWords(event.target.value);
          setOpen(true);
          setAt(0);
        }}
        onFocus={() => setOpen(true)}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            event.preventDefault();
            setAt(Math.min(last, Math.max(0, at + (event.key === "ArrowDown" ? 1 : -1))));
          } else if (event.key === "Enter" && asked) go(at);
          else if (event.key === "Escape") setOpen(false);
        }}
      />
      <div
        id={`${id}-list`}
        role="listbox"
        aria-label="Tables found"
        hidden={!isShown}
        className="absolute z-20 mt-1 w-[min(28rem,calc(100vw-2rem))] rounded-md border border-line bg-card p-1 shadow-lg max-lg:right-0"
      >
        {items.map((item, index) => (
          <div
            key={`${item.catalog} ${item.uuid}`}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={index === at}
            className={classes("flex items-center gap-2 rounded px-2 py-1 text-sm", index === at && "bg-track")}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => go(index)}
            onKeyDown={() => undefined}
          >
            <Name className="flex-1">{item.name}</Name>
            <HealthBadge health={item.health} />
          </div>
        ))}
        <div
          id={`${id}-${last}`}
          role="option"
          tabIndex={-1}
          aria-selected={at === last}
          className={classes("rounded px-2 py-1 text-sm text-soft", at === last && "bg-track")}
          onMouseDown={(event) => event.preventDefault()}
          onClick={() => go(last)}
          onKeyDown={() => undefined}
        >
          {items.length === 0 ? "No table has that in its name." : "Show all of these in the fleet"}
        </div>
      </div>
    </search>
  );
}
