// What the tests stand on: a server that is a process, a browser, and a page with names for what one does on it.
import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createRequire } from 'node:module';
import { createInterface } from 'node:readline';

const MS_TO_HAPPEN = 30_000;

export const REVISIONS = { modern: '2026-07-28', legacy: '2025-11-25' };

/** Names that lead to this machine, in the browser alone. */
export const FRIEND = 'friend.test';
export const STRANGER = 'evil.test';

/** examples/everything, with what it says on standard error. */
export class Server {
  log = [];
  #waiting = new Set();

  static async start(binary, ...options) {
    const server = new Server();
    const stdio = ['ignore', 'pipe', 'pipe'];
    server.process = spawn(binary, ['--http', '127.0.0.1:0', '--log', ...options], { stdio });
    process.on('exit', () => server.stop());
    createInterface({ input: server.process.stderr }).on('line', line => server.#said(line));
    const [first] = await new Promise(resolve => {
      createInterface({ input: server.process.stdout }).on('line', line => resolve([line]));
    });
    server.url = first.replace('listening on ', '');
    server.port = Number(new URL(server.url).port);
    return server;
  }

  /** Where it serves its page, under another name of this machine. */
  page(host = '127.0.0.1') {
    return `http://${host}:${this.port}/`;
  }

  #said(line) {
    this.log.push(line);
    for (const wake of this.#waiting) wake();
  }

  /** Waits until a line of the log matches. */
  async says(pattern) {
    const found = () => this.log.find(line => pattern.test(line));
    const deadline = Date.now() + MS_TO_HAPPEN;
    while (!found()) {
      assert(Date.now() < deadline, `the server never says ${pattern}; it says:\n${this.log.join('\n')}`);
      await new Promise(resolve => {
        const wake = () => {
          clearTimeout(timer);
          this.#waiting.delete(wake);
          resolve();
        };
        const timer = setTimeout(wake, 200);
        this.#waiting.add(wake);
      });
    }
    return found();
  }

  /** What reached a handler. */
  get started() {
    return this.log.filter(line => line.startsWith('started: '));
  }

  forget() {
    this.log = [];
  }

  stop() {
    this.process.kill();
  }
}

/** Starts the browser. playwright-core lies in `modules`. */
export function launch(modules, executablePath, ...extra) {
  const { chromium } = createRequire(`${modules}/`)('playwright-core');
  const quiet = [
    '--disable-quic',
    '--no-first-run',
    '--disable-background-networking',
    '--disable-component-update',
    '--disable-sync',
  ];
  const names = `--host-resolver-rules=MAP ${FRIEND} 127.0.0.1, MAP ${STRANGER} 127.0.0.1`;
  return chromium.launch({ executablePath, args: ['--no-sandbox', '--disable-gpu', ...quiet, names, ...extra] });
}

/** The page in a tab of its own, without anything of another tab's. */
export class Tab {
  complaints = [];

  static async open(browser, url, { era = 'modern', server, width = 1280, scheme = 'light' } = {}) {
    const tab = new Tab();
    tab.context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme: scheme });
    tab.page = await tab.context.newPage();
    tab.page.setDefaultTimeout(MS_TO_HAPPEN);
    tab.page.on('pageerror', error => tab.complaints.push(String(error)));
    tab.page.on('console', message => message.type() === 'error' && tab.complaints.push(message.text()));
    await tab.page.goto(`${url}?${new URLSearchParams({ era, ...(server && { server }) })}`);
    return tab;
  }

  text(selector) {
    return this.page.locator(selector).innerText();
  }

  /** Waits until an element says something. */
  async says(selector, pattern) {
    await this.page
      .locator(selector)
      .filter({ hasText: pattern })
      .first()
      .waitFor()
      .catch(async () => {
        throw new Error(`${selector} never says ${pattern}, but ${JSON.stringify(await this.text(selector))}`);
      });
  }

  connect() {
    return this.page.getByRole('button', { name: 'Connect' }).click();
  }

  connected(revision) {
    return this.says('#status', new RegExp(`Connected .*${revision}`));
  }

  async choose(name, kind = 'Tools') {
    await this.page.locator('#kinds label', { hasText: kind }).click();
    await this.page.getByRole('button', { name, exact: true }).click();
  }

  /** Starts a call, and does not wait for its end. */
  async call(name, args = {}) {
    await this.choose(name);
    for (const [label, value] of Object.entries(args))
      await this.page.locator('#arguments').getByLabel(label).fill(String(value));
    await this.page.getByRole('button', { name: 'Call' }).click();
  }

  async results(pattern) {
    await this.says('#outcome', pattern);
  }

  async answer(fields, button = 'Answer') {
    const form = this.page.locator('.question').first();
    for (const [label, value] of Object.entries(fields)) await form.getByLabel(label).fill(value);
    await form.getByRole('button', { name: button }).click();
  }

  close() {
    return this.context.close();
  }
}
