/** The audit log of a whole service has what its files of settings say, and each change of them. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { connect } from "../../src/cli/rpc/client.ts";
import { startEmbedded } from "../../src/compose/embedded.ts";
import { readConfig } from "../../src/config/config.ts";
import { QueueService } from "../../src/gen/gangway/v1/queue_service_pb.ts";
import { waitUntil } from "../support/bounded.ts";
import { addDatabase } from "../support/data-folder.ts";
import { OWN_KINDS } from "../support/kinds.ts";

test("files leave an entry at the first start and when they change, and none at the next start", async (t) => {
  const folder = mkdtempSync(join(tmpdir(), "gangway-settings-"));
  addDatabase(join(folder, "data"));
  t.after(() => rmSync(folder, { recursive: true }));
  const [limits, access] = [join(folder, "limits.yaml"), join(folder, "access.yaml")];
  const write = (path: string, text: string) => {
    writeFileSync(`${path}.new`, text);
    renameSync(`${path}.new`, path);
  };
  const first = "defaults: {callsPerSecond: 20}";
  write(limits, first);
  write(access, "bindings: [{name: root, subject: ann, role: admin}]");
  const log = () => readFileSync(join(folder, "data", "gangway.log"), "utf8");
  const serve = async () => {
    const config = readConfig(folder, { GANGWAY_LIMITS_FILE: limits, GANGWAY_ACCESS_FILE: access });
    const options = { listen: "127.0.0.1:0", insecure: false, data: join(folder, "data"), simulate: false };
    const service = await startEmbedded({ ...options, examples: false } as never, config, OWN_KINDS);
    const client = connect(service.address, new AbortController().signal);
    const entries = async () => {
      const filter = { action: "ReadSettings" };
      const listed = (await client.call(QueueService.method.listAuditEntries, { filter })).entries;
      return listed.map(({ subject, actor, rpc, details }) => ({ subject, actor, rpc, details: details as never }));
    };
    const close = async () => {
      client.close();
      await service.close();
    };
    return { entries, close };
  };
  const started = await serve();
  const atStart = await started.entries();
  assert.deepEqual(atStart.map(({ subject }) => subject).sort(), ["GANGWAY_ACCESS_FILE", "GANGWAY_LIMITS_FILE"]);
  for (const { actor, rpc } of atStart) assert.deepEqual([actor, rpc], ["system:gangway", ""]);

  write(limits, "defaults: {callsPerSecond: none at all}");
  await waitUntil("the wrong file is reported", () => log().includes("callsPerSecond must be a whole number"));
  assert.equal((await started.entries()).length, 2, "what does not count leaves no entry");
  const second = "defaults: {callsPerSecond: 30}";
  write(limits, second);
  await waitUntil("the change is in the audit log", async () => (await started.entries()).length === 3);
  const [changed] = await started.entries();
  assert.equal(changed?.subject, "GANGWAY_LIMITS_FILE");
  const { file, sha256, before, after } = (changed?.details ?? {}) as Record<string, unknown>;
  const digest = createHash("sha256").update(second).digest("hex");
  assert.deepEqual([file, sha256], [limits, digest]);
  const rate = (settings: unknown) => (settings as { defaults: { callsPerSecond: number } }).defaults.callsPerSecond;
  assert.deepEqual([rate(before), rate(after)], [20, 30]);
  assert.match(log(), /limits of callers read again/);
  await started.close();

  const again = await serve();
  assert.equal((await again.entries()).length, 3, "the same files say nothing new");
  await again.close();
  write(limits, first);
  const last = await serve();
  assert.equal((await last.entries()).length, 4, "a file that has changed between two starts has an entry");
  await last.close();
});
