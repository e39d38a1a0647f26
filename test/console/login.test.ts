/** People log in to the console in a real browser: with a token, and at an issuer of OpenID Connect. */
import assert from "node:assert/strict";
import { after, before, describe, type TestContext, test } from "node:test";
import type { Browser, Page } from "playwright-core";
import { currentConsole } from "../../deploy/build-console.ts";
import type { Db } from "../../src/adapters/store/db/db.ts";
import { readPageFiles } from "../../src/api/web/page-files.ts";
import { startConsole } from "../access/console.ts";
import { waitUntil } from "../support/bounded.ts";
import { openMemoryDb } from "../support/databases.ts";
import { startBrowser } from "./browser/browser.ts";
import { installedBrowser } from "./browser/installed-browser.ts";

const program = installedBrowser();

describe("logins in a browser", { skip: program === null }, () => {
  let browser: Browser;
  let db: Db;
  before(async () => {
    browser = await startBrowser(program ?? "");
    db = await openMemoryDb();
  });
  after(async () => {
    await browser.close();
    await db.close();
  });

  async function serve(t: TestContext) {
    const folder = await currentConsole();
    return await startConsole(t, db, { page: () => readPageFiles(folder) });
  }

  async function open(t: TestContext, url: string): Promise<Page> {
    // A context of its own has no cookies of others.
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(60_000);
    await page.goto(url);
    return page;
  }

  test("a token that is not known is refused with a sentence; one of a robot lets in, and out", async (t) => {
    const { url, robotToken } = await serve(t);
    const page = await open(t, `${url}/jobs?q=phase:waiting`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    const token = page.getByLabel("Token of a robot or a service account");
    await token.fill("gwt_no_such_token");
    await page.getByRole("button", { name: "Sign in" }).click();
    assert.notEqual(String(await page.getByRole("alert").textContent()), "");
    await token.fill(robotToken);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("No job matches").waitFor();
    await page.getByText("robot:ci", { exact: true }).waitFor();
    assert.equal(new URL(page.url()).search, "?q=phase:waiting");
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  test("a person goes to the issuer, and comes back to the view that was asked for", async (t) => {
    const { url, provider } = await serve(t);
    provider.people.set("ann", []);
    const page = await open(t, `${url}/jobs?q=owner:me`);
    await page.getByRole("link", { name: `Sign in at ${provider.issuer}` }).click();
    await page.getByText("login:ann", { exact: true }).waitFor();
    await waitUntil("the browser is back", async () => page.url() === `${url}/jobs?q=owner:me`);
    await page.getByText("No job matches").waitFor();
  });
});
