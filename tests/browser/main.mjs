// node main.mjs EVERYTHING CHROMIUM DIRECTORY PART: `run` beside this file knows what they are.
import { eras } from './eras.mjs';
import { REVISIONS, launch } from './kit.mjs';
import { origins } from './origins.mjs';

const [binary, chromium, directory, part] = process.argv.slice(2);
const count = { passed: 0, failed: 0 };

async function test(name, body) {
  if (!name.includes(part)) return;
  const started = performance.now();
  try {
    await body();
    count.passed += 1;
    console.log(`ok      ${name} (${Math.round(performance.now() - started)} ms)`);
  } catch (error) {
    count.failed += 1;
    console.log(`FAILED  ${name}\n${error.stack}`);
  }
}

const browser = await launch(directory, chromium);
const kit = { test, browser, binary, pictures: directory };
try {
  // Each has servers of its own, and waits most of the time.
  await Promise.all([...Object.keys(REVISIONS).map(era => eras(era, kit)), origins(kit)]);
} finally {
  await browser.close();
}
console.log(`${count.passed} passed, ${count.failed} failed`);
process.exit(count.failed || !count.passed ? 1 : 0);
