/** Writes the table of a job's settings in docs/jobs.md, from the settings themselves. */
import { SETTINGS, type Setting } from "../src/core/kinds/manifest/settings.ts";
import { tableText, withTable, writeTable } from "./page-table.ts";

const PLACE = { page: "docs/jobs.md", shows: "The settings of a job" };

/** The page with the table in its place. */
export function withSettingsTable(page: string): string {
  const rows = SETTINGS.map((setting) => [
    `\`${setting.name}\``,
    `\`spec.${setting.field}\``,
    valueText(setting),
    setting.isMutable === true ? "yes" : "",
  ]);
  return withTable(page, PLACE, tableText(["setting", "member and field", "value", "may change"], rows));
}

function valueText({ type }: Setting): string {
  switch (type.of) {
    case "text":
      return "a name";
    case "number":
      return type.least === undefined ? "a whole number" : `a whole number from ${type.least}`;
    case "seconds":
      return "seconds, or a duration such as `10m`";
    case "duration":
      return "a duration such as `90m`";
    case "flag":
      return "`true` or `false`; the option takes no value";
    case "word":
      return type.words.map((word) => `\`${word}\``).join(", ");
    case "texts":
      return "names with commas between them";
    case "map":
      return "`KEY=VALUE` with commas between several";
    default:
      return type satisfies never;
  }
}

if (import.meta.main) writeTable(PLACE, withSettingsTable);
