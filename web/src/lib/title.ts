import { useEffect } from "react";
import { visible } from "./format";

export function useTitle(title: string): void {
  useEffect(() => {
    document.title = `${visible(title)} · icewright`;
  }, [title]);
}
