/** What people do in the console, on `gangway up`, in a real browser. */
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { waitUntil } from "../../support/bounded.ts";
import { startBrowser } from "./browser.ts";
import { installedBrowser } from "./installed-browser.ts";
import { type ConsoleService, jobRequest, startConsoleService } from "./service.ts";

/** A busy machine needs long; no step of a journey takes so long. */
const ACTION_MS_MAX = 60_000;
const program = installedBrowser();

describe("journeys in a browser", { skip: program === null }, () => {
  let service: ConsoleService;
  let browser: Browser;
  before(async () => {
    browser = await startBrowser(program ?? "");
    service = await startConsoleService();
  });
  after(async () => {
    await browser.close();
    await service[Symbol.asyncDispose]();
  });

  async function open(path: string): Promise<Page> {
    const page = await browser.newPage({ viewport: { width: 1366, height: 768 } });
    page.setDefaultTimeout(ACTION_MS_MAX);
    await page.goto(`${service.url}${path}`);
    return page;
  }

  /** The row of a job in the list. */
  const row = (page: Page, name: string) =>
    page.getByRole("row").filter({ has: page.getByRole("link", { name, exact: true }) });

  /** Waits for a row. Shows new rows as a reader does: they are counted until then. */
  async function listed(page: Page, name: string): Promise<void> {
    const newer = page.getByRole("button", { name: /new$/ });
    await waitUntil(`${name} is listed`, async () => {
      if (await newer.isVisible()) await newer.click();
      return await row(page, name).isVisible();
    });
  }

  test("a newcomer sees the examples move, without loading the page again", async () => {
    const page = await open("/jobs");
    const loads: string[] = [];
    page.on("load", () => loads.push(page.url()));
    await row(page, "hotfix-finetune")
      .or(page.getByRole("button", { name: /new$/ }))
      .first()
      .waitFor();
    await waitUntil("all examples are listed", async () => {
      const more = page.getByRole("button", { name: /new$/ });
      if (await more.isVisible()) await more.click();
      return (await page.getByRole("row").count()) === 13;
    });
    await row(page, "gemma-trainjob").getByText("succeeded").waitFor();
    await row(page, "bad-config").getByText("ExitCode").waitFor();
    assert.deepEqual(loads, []);
    await page.getByText("live", { exact: true }).waitFor();
    await page.close();
  });

  test("a researcher finds the waiting job, reads why, and goes to the job that holds the quota", async () => {
    await service.call("JobService/CreateJob", jobRequest("holder"));
    await service.call("JobService/CreateJob", jobRequest("holder-too"));
    const page = await open("/jobs?q=phase:running");
    await listed(page, "holder");
    await row(page, "holder").getByText("running").waitFor();
    await service.call("JobService/CreateJob", jobRequest("waits", { pods: 2 }));
    await page.getByRole("link", { name: "Waiting longest" }).click();
    await listed(page, "waits");
    const waiting = row(page, "waits");
    await waiting.getByText("QuotaExhausted").or(waiting.getByText("AboveQuota")).waitFor();
    await waiting.getByRole("link", { name: "waits" }).click();
    await page.getByRole("heading", { name: "waits" }).waitFor();
    const quotas = page.getByRole("table", { name: "Quotas in the way" });
    const quota = quotas.getByRole("row").filter({ hasText: "gpu/h100" });
    assert.match(String(await quota.textContent()), /queue default/);
    await quotas.getByRole("link", { name: "default/holder", exact: true }).click();
    await page.getByRole("heading", { name: "holder" }).waitFor();
    assert.equal(new URL(page.url()).pathname, "/jobs/default/holder");
    await page.close();
  });

  test("a researcher reads the log of one replica as it grows, and finds a line", async () => {
    const page = await open("/jobs/default/holder");
    await page.getByRole("link", { name: "Worker/0" }).click();
    const log = page.getByRole("log");
    await log
      .getByText("step 1", { exact: true })
      .or(log.getByText("step 2", { exact: true }))
      .first()
      .waitFor();
    const counted = async () =>
      Number(/(\d+) lines? · live/.exec(String(await page.locator(".logs").textContent()))?.[1] ?? 0);
    const before = await counted();
    await waitUntil("the log grows", async () => (await counted()) > before);
    await page.getByRole("searchbox").fill("started on");
    await waitUntil("one line is found", async () => (await log.locator(".log-line").count()) === 1);
    assert.match(new URL(page.url()).search, /tab=logs&replica=Worker%2F0/);
    await page.close();
  });

  test("a failed job shows its code, its container and its last lines, although its pod is gone", async () => {
    const page = await open("/jobs/default/bad-config");
    await page.getByText("Exit code", { exact: true }).waitFor();
    assert.match(String(await page.locator(".kept-log").textContent()), /ended with exit code 1/);
    await page.getByRole("link", { name: "Events" }).click();
    await page.getByRole("row").filter({ hasText: "PyTorchJobFailed" }).waitFor();
    await page.close();
  });

  test("the address has the filter: another person sees the same list, and Back undoes it", async () => {
    const page = await open("/jobs");
    await row(page, "holder").waitFor();
    await page.getByRole("combobox", { name: "Filter" }).fill("queue:research owner:me");
    await page.getByRole("button", { name: "Filter" }).click();
    await row(page, "llama-pretrain").waitFor();
    assert.equal(await row(page, "holder").count(), 0);
    await page.getByRole("combobox", { name: "Order" }).selectOption("name");
    await waitUntil("the order is in the address", async () => page.url().includes("sort=name"));
    const other = await open(new URL(page.url()).pathname + new URL(page.url()).search);
    await row(other, "llama-pretrain").waitFor();
    const names = async (of: Page) => await of.locator(".grid-body .cell-name").allTextContents();
    assert.deepEqual(await names(other), [...(await names(other))].sort());
    assert.ok((await names(other)).length > 3);
    await page.goBack();
    await page.goBack();
    await row(page, "holder").waitFor();
    await page.close();
    await other.close();
  });

  test("without a mouse: to the list, down, into a job, to its logs and back, and help", async () => {
    const page = await open("/jobs/default/holder");
    await page.getByRole("heading", { name: "holder" }).waitFor();
    await page.keyboard.press("g");
    await page.keyboard.press("j");
    await row(page, "waits").waitFor();
    await page.keyboard.press("j");
    await page.keyboard.press("j");
    const focused = async () => await page.evaluate(() => document.activeElement?.getAttribute("aria-rowindex"));
    await waitUntil("the second row has the focus", async () => (await focused()) === "3");
    await page.keyboard.press("k");
    await waitUntil("the first row has the focus", async () => (await focused()) === "2");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "waits" }).waitFor();
    await page.goBack();
    await row(page, "waits").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("namespace:default hold");
    await page.keyboard.press("Enter");
    await waitUntil("the filter is in the address", async () => page.url().includes("q=namespace%3Adefault+hold"));
    await row(page, "holder-too").waitFor();
    assert.equal(await row(page, "waits").count(), 0);
    await page.keyboard.press("Escape");
    await page.keyboard.press("?");
    await page.getByRole("dialog").getByText("Next row").waitFor();
    await page.keyboard.press("Escape");
    await waitUntil("help is closed", async () => (await page.getByRole("dialog").count()) === 0);
    await page.close();
  });

  test("an operator sees what is full and why jobs wait, and goes from a reason to its jobs", async () => {
    const page = await open("/");
    const clusters = page.getByRole("region", { name: "Clusters" });
    await clusters.getByRole("row").filter({ hasText: "h100-east" }).getByText("8 of 16").waitFor();
    await clusters.getByText("All clusters are simulated: no program runs.").waitFor();
    const queues = page.getByRole("region", { name: "Queues" });
    await queues
      .getByRole("row")
      .filter({ hasText: /default.*h100/ })
      .getByText("8 of 8")
      .waitFor();
    const failed = page.getByRole("region", { name: "Failed within a day" });
    await failed.getByRole("link", { name: "default/bad-config" }).waitFor();
    const reasons = page.getByRole("region", { name: "Why jobs wait" });
    await reasons.getByRole("link").first().click();
    await page.getByRole("heading", { name: "Jobs" }).waitFor();
    assert.match(new URL(page.url()).searchParams.get("q") ?? "", /^phase:waiting reason:[A-Z]/);
    await page.getByRole("row").nth(1).waitFor();
    await page.close();
  });

  test("rows never jump: a new job is counted, and shown once it is asked for", async () => {
    const page = await open("/jobs");
    await row(page, "waits").waitFor();
    const first = page.locator(".grid-body .cell-name").first();
    const before = await first.textContent();
    await service.call("JobService/CreateJob", jobRequest("newest", { queue: "research" }));
    const button = page.getByRole("button", { name: "1 new" });
    await button.waitFor();
    assert.equal(await first.textContent(), before);
    await button.click();
    await row(page, "newest").waitFor();
    await service.call("JobService/DeleteJob", { name: "newest" });
    await row(page, "newest").getByText("deleted").waitFor();
    await page.close();
  });

  test("the page runs under its content policy: nothing is refused, nothing is reported", async () => {
    const page = await browser.newPage();
    const said: string[] = [];
    page.on("console", (message) => said.push(message.text()));
    page.on("pageerror", (error) => said.push(error.message));
    for (const path of [
      "/jobs",
      "/jobs/default/holder",
      "/jobs/default/holder?tab=logs",
      "/jobs/default/holder?tab=yaml",
    ]) {
      await page.goto(`${service.url}${path}`);
      await page.getByText("live", { exact: true }).waitFor();
    }
    assert.deepEqual(said, []);
    await page.close();
  });
});
