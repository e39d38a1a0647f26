import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { countNotes, joinErrors, joinNotes, NOTES_MAX, NoteList } from "../../../src/core/job/request/notes.ts";
import type { FieldNote } from "../../../src/core/job/request/sent.ts";

const notes = (count: number): FieldNote[] =>
  Array.from({ length: count }, (_, at) => ({ field: `f${at}`, message: "is wrong" }));

test("a list keeps the first notes, and its last one says how many more there are", () => {
  const list = joinNotes(notes(99), notes(131_152));
  assert.equal(list.length, NOTES_MAX + 1);
  assert.deepEqual(list.at(-1), { field: "", message: "and 131,151 more", more: 131_151 });
});

test("notes that are only counted are not made", () => {
  let made = 0;
  const list = new NoteList<FieldNote>();
  for (let at = 0; at < 10_000; at += 1) {
    list.add(() => {
      made += 1;
      return { field: "a", message: "b" };
    });
  }
  assert.equal(made, NOTES_MAX);
  assert.equal(list.list((rest) => ({ field: "", ...rest })).length, NOTES_MAX + 1);
});

test("lists that are joined, in whatever groups, stand for as many notes, and have at most one rest, the last", () => {
  const sizes = fc.array(fc.array(fc.nat(250), { maxLength: 4 }), { maxLength: 4 });
  fc.assert(
    fc.property(sizes, (groups) => {
      const list = joinNotes(...groups.map((group) => joinNotes(...group.map(notes))));
      assert.equal(
        countNotes(list),
        groups.flat().reduce((sum, size) => sum + size, 0),
      );
      assert.ok(list.length <= NOTES_MAX + 1);
      assert.ok(list.every(({ more }, at) => more === undefined || at === list.length - 1));
    }),
  );
});

test("errors of one part are counted at that part", () => {
  const errors = notes(150).map(({ field: path, message }) => ({ path, message }));
  assert.deepEqual(joinErrors("spec", errors).at(-1), { path: "spec", message: "and 50 more", more: 50 });
});
