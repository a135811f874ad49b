import { Link } from "@tanstack/react-router";
import { PageHeading } from "../components/ui";
import { useTitle } from "../lib/title";

export function NotFoundPage() {
  useTitle("No such page");
  return (
    <>
      <PageHeading title="There is no page at this address" />
      <p>
        <Link to="/" className="text-accent underline">
          All tables
        </Link>
      </p>
    </>
  );
}
