/** How each view looks: for axe, in light and dark; measured at three sizes. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { startBrowser } from "./browser.ts";
import { installedBrowser } from "./installed-browser.ts";
import { layoutFaults } from "./measure.ts";
import { type ConsoleService, jobRequest, startConsoleService } from "./service.ts";

const program = installedBrowser();
const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const SIZES = [
  { width: 1366, height: 768 },
  { width: 700, height: 900 },
  { width: 390, height: 844 },
];
/** A text that each view has once it has its data. */
const VIEWS: Readonly<Record<string, { readonly path: string; readonly shows: string | RegExp }>> = {
  jobs: { path: "/jobs", shows: "a-job-with-a-name-as-long-as-names-may-be-0123456789" },
  overview: { path: "/", shows: "waits below its quota" },
  "no job": { path: "/jobs?q=no-such-job", shows: "No job matches" },
  "a wrong filter": { path: "/jobs?q=phase:no-such", shows: /there is no phase/ },
  "a job that waits": { path: "/jobs/default/waits", shows: "Quotas in the way" },
  pods: { path: "/jobs/default/holder", shows: "holder-worker-0" },
  logs: { path: "/jobs/default/holder?tab=logs", shows: /step \d/ },
  events: { path: "/jobs/default/holder?tab=events", shows: "PyTorchJobCreated" },
  yaml: { path: "/jobs/default/holder?tab=yaml", shows: /replicaSpecs/ },
  commands: { path: "/jobs/default/holder?tab=commands", shows: "gangway explain holder" },
  "no such job": { path: "/jobs/default/no-such", shows: "Not found" },
  "no such page": { path: "/no/such/page", shows: "There is no such page" },
};

type AxeResult = {
  readonly violations: readonly { readonly id: string; readonly nodes: readonly { html: string }[] }[];
};

describe("looks", { skip: program === null }, () => {
  let service: ConsoleService;
  let browser: Browser;
  before(async () => {
    browser = await startBrowser(program ?? "");
    service = await startConsoleService("--no-examples");
    await service.call("JobService/CreateJob", jobRequest("holder"));
    await service.call("JobService/CreateJob", jobRequest("waits", { pods: 2 }));
    await service.call("JobService/CreateJob", jobRequest(longName(), { gpus: 1, pods: 1 }));
  });
  after(async () => {
    await browser.close();
    await service[Symbol.asyncDispose]();
  });

  async function open(view: string, options: Parameters<Browser["newPage"]>[0]): Promise<Page> {
    const { path = "", shows = "" } = VIEWS[view] ?? {};
    const page = await browser.newPage(options);
    page.setDefaultTimeout(60_000);
    await page.goto(`${service.url}${path}`);
    await page.getByText(shows).first().waitFor();
    return page;
  }

  for (const view of Object.keys(VIEWS)) {
    for (const colorScheme of ["light", "dark"] as const) {
      test(`axe finds nothing: ${view}, ${colorScheme}`, async () => {
        const page = await open(view, { colorScheme });
        await page.evaluate(AXE);
        const { violations } = (await page.evaluate("axe.run()")) as AxeResult;
        const found = violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html.slice(0, 200)}`));
        assert.deepEqual(found, []);
        await page.close();
      });
    }

    for (const viewport of SIZES) {
      test(`nothing is cut, covered or outside: ${view}, ${viewport.width} wide`, async () => {
        const page = await open(view, { viewport });
        assert.deepEqual(await layoutFaults(page), []);
        await page.close();
      });
    }
  }

  test("the measure notices what is cut, covered and outside", async () => {
    const page = await open("no such page", { viewport: { width: 1366, height: 768 } });
    await page.evaluate(() => {
      const add = (text: string, style: string) => {
        const one = document.createElement("p");
        one.textContent = text;
        // An attribute would be refused by the content policy of the page.
        one.style.cssText = style;
        document.getElementById("page")?.append(one);
      };
      const place = "position: fixed; margin: 0; white-space: nowrap;";
      add("a text that is cut", `${place} top: 300px; left: 100px; width: 20px; overflow: hidden`);
      add("one that is covered", `${place} top: 400px; left: 100px`);
      add("one that covers it", `${place} top: 405px; left: 110px`);
      add("outside", `${place} top: 500px; left: 1350px`);
      document.body.style.width = "2000px";
    });
    const kinds = (await layoutFaults(page)).map((fault) => fault.split(":")[0]?.replace(/\d.*/, ""));
    assert.deepEqual([...new Set(kinds)].sort(), ["cut", "outside", "overlap", "the page is "]);
    await page.close();
  });
});

/** As long as a name can be whose pods still have names. */
function longName(): string {
  return "a-job-with-a-name-as-long-as-names-may-be-0123456789";
}
