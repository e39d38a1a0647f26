/** What each view says when it has no answer, none that it may show, or an old one. */
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { currentConsole } from "../../deploy/build-console.ts";
import { readPageFiles } from "../../src/api/web/page-files.ts";
import { startWebFixture } from "../api/web/http.ts";
import { waitUntil } from "../support/bounded.ts";
import { knownCallers } from "../support/known-callers.ts";
import { memoryAccess } from "../support/memory-access.ts";
import { startBrowser } from "./browser/browser.ts";
import { installedBrowser } from "./browser/installed-browser.ts";

const program = installedBrowser();
const LIST_JOBS = "**/gangway.v1.JobService/ListJobs";

describe("states of a view", { skip: program === null }, () => {
  let browser: Browser;
  before(async () => {
    browser = await startBrowser(program ?? "");
  });
  after(() => browser.close());

  /** A page of a service with its stores in memory. */
  async function serve(t: TestContext, ports: Parameters<typeof startWebFixture>[1] = {}): Promise<[Page, string]> {
    const folder = await currentConsole();
    const { url } = await startWebFixture(t, { ...ports, web: { page: () => readPageFiles(folder) } });
    const page = await browser.newPage();
    page.setDefaultTimeout(60_000);
    t.after(() => page.close());
    return [page, url];
  }

  test("nothing there: why, and what to do next", async (t) => {
    const [page, url] = await serve(t);
    await page.goto(`${url}/jobs`);
    await page.getByRole("heading", { name: "No jobs yet" }).waitFor();
    await page.getByText("bin/gangway submit").waitFor();
  });

  test("no answer yet is loading, and says so; nothing says that there are no jobs", async (t) => {
    const [page, url] = await serve(t);
    const held = Promise.withResolvers<void>();
    await page.route(LIST_JOBS, async (route) => {
      await held.promise;
      await route.continue();
    });
    await page.goto(`${url}/jobs`);
    await page.getByText("Loading the jobs").waitFor();
    assert.equal(await page.getByText("No jobs yet").count(), 0);
    held.resolve();
    await page.getByText("No jobs yet").waitFor();
  });

  test("a service that does not answer, then does: an error with a button that tries again", async (t) => {
    const [page, url] = await serve(t);
    await page.route(LIST_JOBS, (route) => route.abort());
    await page.goto(`${url}/jobs`);
    await page.getByRole("alert").getByText("The service does not answer.").waitFor();
    await page.unroute(LIST_JOBS);
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("No jobs yet").waitFor();
  });

  test("old data stay, with their age, when the service stops to answer", async (t) => {
    const [page, url] = await serve(t);
    await page.clock.install();
    await page.goto(`${url}/jobs`);
    await page.getByText("No jobs yet").waitFor();
    await page.route(LIST_JOBS, (route) => route.abort());
    await waitUntil("the list is asked for again", async () => {
      await page.clock.runFor(5_000);
      return await page.getByText(/As it was .* ago: The service does not answer/).isVisible();
    });
    assert.ok(await page.getByText("No jobs yet").isVisible());
  });

  test("an error of the service: its sentence and the id of the request", async (t) => {
    const [page, url] = await serve(t);
    await page.goto(`${url}/jobs/default/none`);
    const alert = page.getByRole("alert");
    await alert.getByText("job default/none does not exist").waitFor();
    assert.match(String(await alert.textContent()), /Request [0-9a-z-]{8,}/);
  });

  test("no permission: which one, and in which scope", async (t) => {
    const access = memoryAccess({ enforces: true });
    const [page, url] = await serve(t, { ports: { authorization: access.authorization } });
    await page.goto(`${url}/jobs?q=namespace:secret`);
    await page.getByRole("heading", { name: "You may not see the jobs" }).waitFor();
    await page.getByText("jobs.get", { exact: true }).last().waitFor();
  });

  test("a caller who is not known is asked to sign in", async (t) => {
    const { authenticate } = await knownCallers(t);
    const [page, url] = await serve(t, { ports: { authenticate } });
    await page.goto(`${url}/jobs`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  test("a service of another version: the page offers to load again", async (t) => {
    const [page, url] = await serve(t);
    await page.route(LIST_JOBS, async (route) => {
      const answer = await route.fetch();
      await route.fulfill({ response: answer, headers: { ...answer.headers(), "gangway-version": "99.0.0" } });
    });
    await page.goto(`${url}/jobs`);
    await page.getByRole("button", { name: "Gangway 99.0.0 runs now: reload" }).waitFor();
  });
});
