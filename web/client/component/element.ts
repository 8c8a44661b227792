/**
 * <seckill-drop sale="slug-or-id" api="https://shop.example.com">: a sale to buy from, in a page of its own. It shows a
 * countdown, buys, waits, and leads to the payment and back. Attributes: `lang` (en, zh), `return-url` (page to come back
 * to after the payment; default: this one), `sign-in` (address of a sign-in page instead of the form). Properties:
 * `session`, for pages that have users already. Event: `seckill-order` with `{ id, number, status }`.
 */
import { effect, signal } from '@preact/signals-core';
import { createCaptcha, toAnswer } from '../src/buy.ts';
import { solve, work } from '../src/captcha/solve.ts';
import { Client } from '../src/client.ts';
import { Drop, type DropState, type View } from '../src/drop.ts';
import { Fault, toFault } from '../src/fault.ts';
import { Http } from '../src/http.ts';
import { formatMoney } from '../src/money.ts';
import { PasswordSession, Refusal, type Session } from '../src/session.ts';
import { kept } from '../src/storage.ts';
import { css } from './style.ts';
import { textsOf, type Texts } from './texts.ts';
import type { Challenge, Failure, Order, Payment } from '../src/types.ts';

const Base = globalThis.HTMLElement ?? (class {} as typeof HTMLElement); // pages are rendered on servers too

type Child = Node | string | null | undefined | false;
type Attributes = Record<string, string | number | boolean | ((event: Event) => void)>;

/** An element; functions are listeners, and false leaves an attribute out. */
function h(name: string, attributes: Attributes = {}, ...children: Child[]): HTMLElement {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(key, value);
    else if (key === 'value') (element as HTMLInputElement).value = String(value);
    else if (value !== false) element.setAttribute(key, value === true ? '' : String(value));
  }
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

type Later = typeof import('./later.ts');
const later = signal<Later | null>(null);
let loading = false;

/** The part that is loaded when it is needed; null until then. The next change of the state tries again after a failure. */
function needLater(): Later | null {
  if (!later.value && !loading) {
    loading = true;
    void import('./later.ts').then((loaded) => (later.value = loaded), () => {}).finally(() => (loading = false));
  }
  return later.value;
}

/** The captcha under way: what to show of it. */
type Check = { challenge: Challenge | null; share: number; why: string | null };

/** The element. */
export class SeckillDrop extends Base {
  static observedAttributes = ['sale', 'api', 'lang', 'sign-in'];
  /** The session of the page; without it the element has a sign-in form, and keeps its session for the tab. */
  session: Session | null = null;
  #drop: Drop | null = null;
  #stop: () => void = () => {};
  readonly #check = signal<Check | null>(null);
  readonly #signing = signal<{ busy: boolean; why: string | null; code: boolean }>({ busy: false, why: null, code: false });
  readonly #payment = signal<Payment | null>(null);
  #picture = false;
  #quantity = 1;
  #checked: View | null = null;
  #stopWork: () => void = () => {};
  #shown = new Map<Element, string>();
  #told = '';

  connectedCallback(): void {
    queueMicrotask(() => this.isConnected && !this.#drop && this.#start()); // after the page has set its properties
  }

  disconnectedCallback(): void {
    this.#end();
  }

  attributeChangedCallback(): void {
    if (!this.#drop) return;
    this.#end();
    this.#start();
  }

  /** The sale and its actions; null while the element is not in a page. */
  get drop(): Drop | null {
    return this.#drop;
  }

  get #language(): 'en' | 'zh' {
    const tag = this.lang || this.closest<HTMLElement>('[lang]')?.lang || navigator.language;
    return /^zh\b/i.test(tag) ? 'zh' : 'en';
  }

  /** Address of the shop. */
  get #shop(): URL {
    return new URL(this.getAttribute('api') || import.meta.url, location.href);
  }

  #start(): void {
    const language = this.#language;
    const http = new Http({ url: new URL('/graphql', this.#shop).href, language: () => (language === 'zh' ? 'zh-CN' : 'en') });
    const own = this.session ? null : new PasswordSession(http, kept(() => sessionStorage));
    const client = new Client({ http, session: this.session ?? own! });
    const drop = (this.#drop = new Drop(client, this.getAttribute('sale') ?? ''));
    if (own) own.changed = () => drop.userChanged();
    const root = this.shadowRoot ?? this.attachShadow({ mode: 'open' });
    root.adoptedStyleSheets = [css()];
    const parts = ['head', 'item', 'timer', 'status', 'problem', 'body'].map((part) => h('div', { part }));
    const [head, item, timer, status, problem, body] = parts as [HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement, HTMLElement];
    timer.setAttribute('role', 'timer');
    status.setAttribute('role', 'status');
    problem.setAttribute('role', 'alert');
    root.replaceChildren(h('section', { part: 'drop', 'aria-labelledby': 'title', lang: language === 'zh' ? 'zh-CN' : 'en' }, ...parts));
    const texts = textsOf(language);
    const stop = effect(() => {
      const state = drop.state.value;
      const check = this.#check.value;
      const shown = { state, texts, language, drop, check, own };
      this.#beginCheck(state.view);
      this.#fill(head, state.sale?.title ?? '', (title) => (title ? [h('h2', { id: 'title' }, title)] : []));
      this.#showItem(item, shown);
      const until = state.view.kind === 'wait' ? state.view.at : state.view.kind === 'pay' && state.view.order?.paymentDeadline ? Date.parse(state.view.order.paymentDeadline) : null;
      this.#fill(timer, until ? texts.left(until - state.now) : '', (text) => (text ? [text] : []));
      this.#fill(status, statusText(shown), (text) => (text ? [text] : []));
      this.#fill(problem, problemText(shown), (text) => (text ? [text] : []));
      this.#showBody(body, shown);
      this.#tell(state.view);
    });
    this.#stop = () => {
      stop();
      drop.close();
      client.close();
    };
  }

  #end(): void {
    this.#stopWork();
    this.#stop();
    this.#drop = null;
    this.#shown.clear();
  }

  /** Replaces the children of a part when its content changes. Focus that would be lost goes to the part. */
  #fill(part: HTMLElement, key: string, build: (key: string) => Child[]): void {
    if (this.#shown.get(part) === key) return;
    this.#shown.set(part, key);
    const nameOf = (element: Element): string => element.getAttribute('name') ?? element.textContent;
    const focused = this.shadowRoot!.activeElement;
    const lost = focused && part.contains(focused);
    part.replaceChildren(...build(key).filter((child): child is Node | string => !!child));
    if (!lost) return;
    const all = [...part.querySelectorAll<HTMLElement>('button, input, a, select')];
    const next = all.find((each) => nameOf(each) === nameOf(focused)) ?? all[0];
    if (!next) part.tabIndex = -1;
    (next ?? part).focus();
  }

  #showItem(part: HTMLElement, { state: { sale, item }, texts, language, drop }: Shown): void {
    if (!sale || !item) return this.#fill(part, '', () => []);
    const { level, remaining } = item.stock;
    const price = formatMoney(item.price, language);
    const usual = formatMoney(item.goods.listPrice, language);
    this.#fill(part, JSON.stringify([item.id, item.goods.name, item.goods.imageUrl, price, usual, level, remaining]), () => [
      item.goods.imageUrl && h('img', { part: 'image', src: new URL(item.goods.imageUrl, this.#shop).href, alt: item.goods.imageAlt ?? item.goods.name }),
      sale.items.length > 1
        ? h(
            'select',
            { 'aria-label': texts.item, change: (event) => drop.choose((event.target as HTMLSelectElement).value) },
            ...sale.items.map(({ id, goods }) => h('option', { value: id, selected: id === item.id }, goods.name)),
          )
        : h('p', { part: 'name' }, item.goods.name),
      h('p', { part: 'price' }, h('strong', {}, price), usual !== price && item.goods.listPrice.currencyCode === item.price.currencyCode && h('s', {}, h('span', { class: 'hidden' }, `${texts.usual} `), usual)),
      h('p', { part: 'stock' }, remaining !== null && level !== 'SOLD_OUT' ? texts.leftUnits(remaining) : texts.stock[level]),
    ]);
  }

  #showBody(part: HTMLElement, shown: Shown): void {
    const { state, texts, language, drop, check, own } = shown;
    const { view, sale, item } = state;
    const page = (path: string): string => new URL(path, this.#shop).href;
    const act = (label: string, click: () => void, more: Attributes = {}): HTMLElement => h('button', { type: 'button', click, ...more }, label);
    const link = (label: string, href: string): HTMLElement => h('a', { href }, label);
    const signIn = own && !own.signedIn();
    const key = (...more: unknown[]): string => JSON.stringify([view.kind, signIn, ...more]);
    switch (view.kind) {
      case 'wait':
      case 'sign-in': {
        const signing = this.#signing.value;
        const draw = view.kind === 'wait' && view.draw;
        return this.#fill(part, JSON.stringify(['sign', signIn, draw, signing]), () => [
          signIn ? this.#signInForm(own, shown) : view.kind === 'sign-in' && this.#signInLink(shown),
          draw && act(texts.draw, () => drop.prepare(), { class: 'main' }),
        ]);
      }
      case 'buy': {
        const most = Math.min(item?.stock.remaining ?? Infinity, sale?.viewer?.items.find((each) => each.item.id === item?.id)?.remainingLimit ?? 1, 10);
        const units = h('select', { 'aria-label': texts.quantity, change: (event) => (this.#quantity = Number((event.target as HTMLSelectElement).value)) });
        this.#quantity = Math.min(this.#quantity, Math.max(most, 1));
        for (let n = 1; n <= most; n++) units.append(h('option', { value: n, selected: n === this.#quantity }, String(n)));
        const code = state.problem instanceof Fault ? '' : (state.problem?.code ?? '');
        return this.#fill(part, key(most, item?.id, code), () => [
          most > 1 && units,
          act(texts.buy, () => drop.buy(this.#quantity), { class: 'main' }),
          ['ADDRESS_REQUIRED', 'CONTACT_UNVERIFIED'].includes(code) && link(texts.inShop, page('/account')),
          own && act(texts.signOut, () => own.signOut(), { class: 'link' }),
        ]);
      }
      case 'check':
        return this.#fill(part, key(check?.challenge?.id, check?.why, check && Math.round(check.share * 20)), () => [
          check?.challenge?.image ? this.#pictureForm(check.challenge, shown) : check?.challenge?.kind === 'EXTERNAL' && link(texts.inShop, page(`/s/${sale!.slug}`)),
          check?.challenge?.kind === 'PROOF_OF_WORK' && h('progress', { value: check.share, max: 1, 'aria-label': texts.checking }),
          check?.why && act(texts.again, () => this.#request(null)),
          check?.challenge?.kind === 'PROOF_OF_WORK' && act(texts.picture, () => ((this.#picture = true), this.#request(null)), { class: 'link' }),
          act(texts.cancel, () => drop.dismiss(), { class: 'link' }),
        ]);
      case 'room':
        return this.#fill(part, key(), () => [view.waiting && act(texts.leave, () => drop.leave(), { class: 'link' })]);
      case 'pay': {
        const payment = this.#payment.value;
        const options = view.order?.paymentOptions ?? [];
        const phone = matchMedia('(pointer: coarse)').matches;
        const fits = options.filter(({ device, unavailableReason }) => !unavailableReason && device !== (phone ? 'DESKTOP' : 'PHONE'));
        const code = payment?.qrCode && !payment.redirectUrl && needLater()?.qr(payment.qrCode, texts.scan);
        return this.#fill(part, key(view.order?.id, fits.map(({ id }) => id), payment?.id, !!code), () => [
          view.order && h('p', {}, `${texts.order} `, h('bdi', {}, view.order.number), ' · ', formatMoney(view.order.total, language)),
          ...fits.map(({ id, displayName, kind }) =>
            kind === 'EMBEDDED' ? link(texts.payWith(displayName), page(`/orders/${view.order!.id}/pay`)) : act(texts.payWith(displayName), () => void this.#pay(id), { class: 'main' }),
          ),
          !!view.order && !fits.length && link(texts.inShop, page(`/orders/${view.order.id}`)),
          payment?.redirectUrl && link(texts.toPayment, payment.redirectUrl),
          code,
        ]);
      }
      case 'order':
        return this.#fill(part, key(view.order.id, view.order.status), () => [
          h('p', {}, `${texts.order} `, h('bdi', {}, view.order.number), ' · ', formatMoney(view.order.total, language)),
        ]);
      case 'waitlist':
        return this.#fill(part, key(), () => [link(texts.waitlist, page(`/s/${sale!.slug}`))]);
      case 'draw':
        return this.#fill(part, key(view.step), () => [link(texts.inShop, page(`/s/${sale!.slug}`))]);
      case 'loading':
        return this.#fill(part, key(!!state.problem), () => [!!state.problem && act(texts.again, () => void drop.reload())]);
      case 'missing':
      case 'sending':
      case 'queue':
      case 'closed':
        return this.#fill(part, key(), () => []);
    }
  }

  #signInLink({ texts }: Shown): HTMLElement | null {
    const address = this.getAttribute('sign-in');
    return address ? h('a', { href: address, class: 'main' }, texts.signIn) : null;
  }

  #signInForm(session: PasswordSession, shown: Shown): HTMLElement {
    const own = this.#signInLink(shown);
    if (own) return own;
    const { texts } = shown;
    const { busy, why, code } = this.#signing.peek();
    const field = (label: string, name: string, more: Attributes): HTMLElement => h('label', {}, label, h('input', { name, required: true, ...more }));
    const submit = (event: Event): void => {
      event.preventDefault();
      const values = Object.fromEntries(new FormData(event.target as HTMLFormElement)) as Record<string, string>;
      if (!busy) void this.#signIn(session, values, shown);
    };
    return h(
      'form',
      { submit },
      why && h('p', { role: 'alert', class: 'problem' }, why),
      field(texts.account, 'account', { autocomplete: 'username', autocapitalize: 'off', spellcheck: 'false', value: this.#typed['account'] ?? '' }),
      field(texts.password, 'password', { type: 'password', autocomplete: 'current-password', value: this.#typed['password'] ?? '' }),
      code && field(texts.code, 'oneTimeCode', { autocomplete: 'one-time-code', inputmode: 'numeric' }),
      h('button', { class: 'main', 'aria-disabled': String(busy) }, busy ? texts.signingIn : texts.signIn),
      h('a', { href: new URL('/register', this.#shop).href }, texts.register),
    );
  }

  #typed: Record<string, string> = {};

  async #signIn(session: PasswordSession, values: Record<string, string>, { texts, drop }: Shown): Promise<void> {
    this.#typed = values;
    this.#signing.value = { ...this.#signing.peek(), busy: true, why: null };
    const { account = '', password = '', oneTimeCode } = values;
    let { code } = this.#signing.peek();
    let why: string | null = null;
    try {
      await session.signIn(account, password, oneTimeCode ? { oneTimeCode } : {}).catch(async (thrown) => {
        const failure = thrown instanceof Refusal ? thrown.failure : null;
        if (failure?.code !== 'CAPTCHA_REQUIRED') throw thrown;
        const given = failure.__typename === 'CaptchaError' ? failure.challenge : null;
        const challenge = given?.kind === 'PROOF_OF_WORK' ? given : await createCaptcha(drop.client, { purpose: 'LOGIN', kind: 'PROOF_OF_WORK' });
        const { challengeId, answer } = toAnswer(challenge, await solve(challenge.parameters ?? '{}'));
        await session.signIn(account, password, { ...(oneTimeCode && { oneTimeCode }), captcha: { challengeId, answer } });
      });
      this.#typed = {};
    } catch (thrown) {
      const failure = thrown instanceof Refusal ? thrown.failure : null;
      code ||= failure?.code === 'ONE_TIME_CODE_REQUIRED';
      why = failure ? failure.message : texts.fault(toFault(thrown));
    }
    this.#signing.value = { busy: false, why, code };
  }

  /** Requests or takes the captcha once per view. */
  #beginCheck(view: View): void {
    if (view === this.#checked || (view.kind === 'check' && this.#checked?.kind === 'check' && this.#checked.challenge === view.challenge && this.#checked.failure === view.failure)) return;
    this.#checked = view;
    this.#stopWork();
    queueMicrotask(() => (view.kind === 'check' ? this.#request(view.challenge) : (this.#check.value = null)));
  }

  #request(given: Challenge | null): void {
    const drop = this.#drop;
    const sale = drop?.state.peek().sale;
    if (!drop || !sale) return;
    let over = false;
    let stop = (): void => {};
    this.#stopWork();
    this.#stopWork = () => {
      over = true;
      stop();
    };
    const fail = (why: string): void => void (over || (this.#check.value = { challenge: null, share: 0, why }));
    const take = (challenge: Challenge): void => {
      if (over) return;
      this.#check.value = { challenge, share: 0, why: null };
      if (challenge.kind !== 'PROOF_OF_WORK') return;
      stop = work(challenge.parameters ?? '{}', (report) => {
        if ('share' in report) this.#check.value = { challenge, share: report.share, why: null };
        else if ('answer' in report) drop.answer(toAnswer(challenge, report.answer));
        else fail(textsOf(this.#language).fault(new Fault('INTERNAL', '')));
      });
    };
    this.#check.value = { challenge: null, share: 0, why: null };
    if (given && !this.#picture) return take(given);
    createCaptcha(drop.client, { purpose: 'SECKILL', saleId: sale.id, automatic: !this.#picture }).then(take, (thrown) =>
      fail(thrown instanceof Refusal ? thrown.failure.message : textsOf(this.#language).fault(toFault(thrown))),
    );
  }

  #pictureForm(challenge: Challenge, { texts, drop }: Shown): HTMLElement {
    const canvas = h('canvas', { role: 'img', 'aria-label': texts.picture }) as HTMLCanvasElement;
    const [head = '', data = ''] = challenge.image!.split(',', 2); // drawn, because pages may forbid data URLs
    const type = /^data:([^;,]+)/.exec(head)?.[1] ?? 'image/png';
    void createImageBitmap(new Blob([Uint8Array.from(atob(data), (c) => c.charCodeAt(0))], { type })).then((bitmap) => {
      canvas.width = bitmap.width;
      canvas.height = bitmap.height;
      canvas.getContext('2d')!.drawImage(bitmap, 0, 0);
    });
    const input = h('input', { required: true, autocomplete: 'off', autocapitalize: 'off', spellcheck: 'false', inputmode: challenge.kind === 'MATH' ? 'numeric' : 'text' }) as HTMLInputElement;
    const submit = (event: Event): void => {
      event.preventDefault();
      drop.answer(toAnswer(challenge, input.value.trim()));
    };
    return h('form', { submit }, canvas, h('label', {}, challenge.prompt ?? texts.picture, input), h('button', { class: 'main' }, texts.send));
  }

  async #pay(optionId: string): Promise<void> {
    const back = this.getAttribute('return-url') ?? location.href.replace(/#.*/, '');
    const payment = await this.#drop?.pay(optionId, back || undefined);
    this.#payment.value = payment ?? null;
    if (payment?.redirectUrl) location.assign(payment.redirectUrl);
  }

  /** Dispatches the event of an order once per status. */
  #tell(view: View): void {
    const order = view.kind === 'pay' || view.kind === 'order' ? view.order : null;
    const key = order ? order.id + order.status : '';
    if (!order || key === this.#told) return;
    this.#told = key;
    const { id, number, status } = order;
    this.dispatchEvent(new CustomEvent('seckill-order', { detail: { id, number, status }, bubbles: true, composed: true }));
  }
}

interface Shown {
  state: DropState;
  texts: Texts;
  language: 'en' | 'zh';
  drop: Drop;
  check: Check | null;
  own: PasswordSession | null;
}

/** The state in words. */
function statusText({ state: { view, sale }, texts, language, check }: Shown): string {
  const time = (at: string | number): string => new Date(at).toLocaleString(language === 'zh' ? 'zh-CN' : 'en', { dateStyle: 'medium', timeStyle: 'short' });
  switch (view.kind) {
    case 'wait':
      return texts.opens(time(view.at));
    case 'check':
      return check?.challenge?.image ? '' : texts.checking;
    case 'room': {
      const ahead = view.waiting?.least.value ?? null;
      return ahead === null ? texts.room : texts.ahead(ahead);
    }
    case 'order':
      return texts.status[view.order.status as Order['status']] ?? '';
    case 'closed':
      return view.reason ?? texts.phase[view.phase] ?? '';
    case 'draw':
      return needLater()?.drawing[language][view.step](time(sale!.entriesCloseAt!), view.rank ?? 0) ?? '';
    case 'waitlist':
      return view.joined ? texts.onWaitlist : (texts.stock.SOLD_OUT ?? '');
    case 'sending':
      return view.slow ? texts.slow : texts.sending;
    case 'sign-in':
    case 'buy':
      return sale ? texts.ends(time(sale.endsAt)) : '';
    case 'pay':
      return texts.toPay;
    default:
      return texts[view.kind];
  }
}

/** The last refusal or fault in words: refusals come in the language of the request. */
function problemText({ state: { problem, view }, texts, check }: Shown): string {
  if (check?.why) return check.why;
  const failed = problem ?? (view.kind === 'check' ? view.failure : null);
  if (!failed) return '';
  if (failed instanceof Fault) return texts.fault(failed);
  return (failed as Failure).message || texts.passed;
}

if (globalThis.customElements && !customElements.get('seckill-drop')) customElements.define('seckill-drop', SeckillDrop);
