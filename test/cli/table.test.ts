import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatSpan } from "../../src/cli/output/duration.ts";
import { renderTable } from "../../src/cli/output/table.ts";
import { parseDurationMs } from "../../src/runtime/duration.ts";

const WIDE = { columns: null, color: false };

test("each row of a table is one line without control characters", () => {
  fc.assert(
    fc.property(fc.array(fc.array(fc.string({ unit: "binary", maxLength: 30 }), { maxLength: 3 })), (rows) => {
      const lines = renderTable([{ title: "A" }, { title: "B", align: "right" }, { title: "C" }], rows, WIDE);
      assert.equal(lines.length, rows.length + 1);
      for (const line of lines) assert.doesNotMatch(line, /[\p{Cc}]/u);
    }),
  );
});

test("columns are aligned with their headings, and empty cells are dashes", () => {
  const columns = [{ title: "NAME" }, { title: "PODS", align: "right" }, { title: "REASON" }] as const;
  assert.deepEqual(
    renderTable(
      columns,
      [
        ["a-long-name", "1/2", "waits"],
        ["b", "12/128", ""],
      ],
      WIDE,
    ),
    ["NAME           PODS  REASON", "a-long-name     1/2  waits", "b            12/128  -"],
  );
});

test("the last column is cut at the terminal's edge", () => {
  const lines = renderTable([{ title: "NAME" }, { title: "MESSAGE" }], [["a", "x".repeat(100)]], {
    columns: 40,
    color: false,
  });
  assert.deepEqual(
    lines.map((line) => line.length),
    [13, 40],
  );
  assert.ok(lines[1]?.endsWith("x…"));
});

test("only rows are painted, around the padded cell", () => {
  const columns = [{ title: "PHASE", paint: (cell: string) => `<${cell}>` }, { title: "X" }];
  assert.deepEqual(renderTable(columns, [["UP", "1"]], { columns: null, color: true }), ["PHASE  X", "<UP   >  1"]);
});

const spans = {
  0: "0s",
  [-5000]: "0s",
  59999: "59s",
  60000: "1m",
  192000: "3m12s",
  18420000: "5h7m",
  183600000: "2d3h",
  3601000: "1h",
};

test("a span has at most its two largest units", () => {
  for (const [spanMs, text] of Object.entries(spans)) assert.equal(formatSpan(Number(spanMs)), text);
});

const durations = {
  "90s": 90_000,
  "500ms": 500,
  "1h30m": 5_400_000,
  "0s": 0,
  "1.5s": 1500,
  "5": null,
  "": null,
  "1x": null,
  "-1s": null,
  "1s ": null,
};

test("a duration needs a unit", () => {
  for (const [text, durationMs] of Object.entries(durations)) assert.equal(parseDurationMs(text), durationMs, text);
});
