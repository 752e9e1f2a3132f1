// Opens pages in headless Chromium and prints what was found, as JSON: see test_in_browser.py.
//     node in_browser.mjs CHROMIUM FOLDER_OF_NODE_MODULES PAGE...
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const [, , executablePath, modules, ...paths] = process.argv;
const require = createRequire(pathToFileURL(`${modules}/`));
const { chromium } = require("playwright-core");
const axe = require.resolve("axe-core/axe.min.js");
const browser = await chromium.launch({ executablePath, args: ["--no-sandbox", "--disable-gpu"] });
const found = {};

async function open(path, options) {
  const page = await browser.newPage({ viewport: { width: 1000, height: 900 }, ...options });
  page.setDefaultTimeout(60000);
  const errors = [];
  page.on("pageerror", error => errors.push(error.message));
  page.on("console", message => errors.push(message.text()));
  page.on("request", request => /^(file|data):/.test(request.url()) || errors.push(request.url()));
  await page.goto(pathToFileURL(path).href);
  return [page, errors];
}

// Widths, errors, and what axe-core objects to, with everything unfolded.
async function look(path, width, colorScheme) {
  const [page, errors] = await open(path, { viewport: { width, height: 900 }, colorScheme });
  const overflow = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  await page.close();
  const [bypassed] = await open(path, { viewport: { width, height: 900 }, colorScheme, bypassCSP: true });
  await bypassed.evaluate(() => document.querySelectorAll("details").forEach(each => { each.open = true; }));
  await bypassed.addScriptTag({ path: axe });
  const { violations } = await bypassed.evaluate(() => axe.run());
  await bypassed.close();
  return { overflow, errors, violations: violations.map(each => `${each.id}: ${each.nodes[0].html.slice(0, 200)}`) };
}

// What the script of an interactive page does.
async function use(page) {
  const shown = () => page.$$eval("main tbody tr", rows => rows
    .filter(row => row.offsetParent !== null).map(row => row.cells[0].textContent.trim()));
  const texts = () => page.$$eval("main td, main th, main p, main caption, h1, h2", all => all
    .map(each => each.textContent).sort());
  const column = index => page.$$eval("main table", (tables, at) => [...tables[0].tBodies[0].rows]
    .map(row => row.cells[at].textContent), index);
  const done = { before: await shown(), sorted: [] };
  await page.click("main thead th:nth-child(2) button");
  for (let click = 0; click < 3; click += 1) {
    done.sorted.push(await column(1));
    await page.click("main thead th:nth-child(2) button");
  }
  await page.click("main thead th:nth-child(2) button");
  await page.click("main thead th:nth-child(2) button");
  await page.click("main thead th:nth-child(1) button");
  done.names = await column(0);
  await page.click("main tr.g button");
  done.folded = await shown();
  await page.click(".tools button");
  done.unfolded = await shown();
  await page.fill("input[type=search]", "QUÀRTER");
  done.found = await shown();
  done.status = await page.textContent("[role=status]");
  await page.fill("input[type=search]", "");
  done.after = await shown();
  done.texts = await texts();
  return done;
}

for (const path of paths) {
  found[path] = [];
  for (const [width, scheme] of [[400, "light"], [1000, "dark"], [1600, "light"]])
    found[path].push(await look(path, width, scheme));
  const [page, errors] = await open(path, {});
  if (await page.$(".tools")) found.used = { ...await use(page), errors };
  await page.close();
}
console.log(JSON.stringify(found));
await browser.close();
