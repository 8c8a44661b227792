/**
 * One sale with its user, for a page of any framework: it is read, followed and bought. The component
 * seckill-drop and the hooks for React show `view`.
 */
import { computed, effect, signal, untracked, type ReadonlySignal, type Signal } from '@preact/signals-core';
import type { Client } from './client.ts';
import { OneSale, SaleStatus, SaleStock } from './documents/sale.ts';
import { toFault, type Fault } from './fault.ts';
import { followOrder, payAgain, payOrder } from './order.ts';
import { Purchase } from './purchase.ts';
import { Refusal } from './session.ts';
import type { Bought, Challenge, Failure, Item, Order, Payment, Phase, PublicSale, Sale } from './types.ts';
import type { Waiting } from './waiting.ts';

/** How often the sale is read where nothing is pushed, in ms. */
const POLL_MS = 5_000;
/** Reads of many viewers after one change are spread over this time, in ms. */
const SPREAD_MS = 1_000;
/** Orders that hold no units: the sale decides again. */
const OVER: Order['status'][] = ['CANCELLED', 'EXPIRED', 'REFUNDED'];

/** What to show below the sale. */
export type View =
  | { kind: 'loading' }
  | { kind: 'missing' }
  /** Before the opening, or before the user's own time; `draw` can be joined by `prepare`. */
  | { kind: 'wait'; at: number; draw: boolean }
  | { kind: 'sign-in' }
  | { kind: 'buy' }
  /** A captcha is wanted: `challenge` after a wrong answer, else the page requests one. */
  | { kind: 'check'; challenge: Challenge | null; failure: Failure | null }
  | { kind: 'sending'; slow: boolean }
  | { kind: 'room'; waiting: Waiting | null }
  | { kind: 'queue' }
  | { kind: 'pay'; order: Order | null }
  | { kind: 'order'; order: Order }
  | { kind: 'waitlist'; joined: boolean }
  /** A draw, which is entered and redeemed on the page of the sale: `rank` is the number drawn. */
  | { kind: 'draw'; step: 'enter' | 'in' | 'drawn' | 'offered' | 'closed'; rank: number | null }
  | { kind: 'closed'; phase: Phase; reason: string | null };

/** All that a page shows of a sale. A new object after each change. */
export interface DropState {
  sale: Sale | null;
  /** The chosen item. */
  item: Item | null;
  view: View;
  /** Server time in ms; it advances every second. */
  now: number;
  /** The last refusal or fault; it stays beside the next view. */
  problem: Failure | Fault | null;
}

/** A sale by its id or slug. */
export class Drop {
  readonly #sale: Signal<Sale | null> = signal(null);
  readonly #missing = signal(false);
  readonly #fault: Signal<Fault | null> = signal(null);
  readonly #failure: Signal<Failure | null> = signal(null);
  readonly #order: Signal<Order | null> = signal(null);
  readonly #purchase: Signal<Purchase | null> = signal(null);
  readonly #signedIn = signal(false);
  readonly #now = signal(0);
  readonly #itemId: Signal<string | null> = signal(null);
  readonly #stops: (() => void)[] = [];
  #followed: { id: string; stop: () => void } | null = null;
  #reading = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #closed = false;

  constructor(
    readonly client: Client,
    readonly name: string,
  ) {
    const tick = (): void => void (this.#now.value = client.clock.now());
    tick();
    const timer = setInterval(tick, 1_000);
    this.#stops.push(() => clearInterval(timer));
    void client.clock.sync().then(tick, () => {});
    void this.reload();
    // The order of the sale or of the purchase is followed until there is a newer one.
    this.#stops.push(
      effect(() => {
        const attempt = this.#purchase.value?.attempt.value;
        const bought: Bought | null | undefined = attempt?.step === 'bought' ? attempt.task.order : this.#sale.value?.viewer?.order;
        if (bought && !OVER.includes(bought.status)) untracked(() => this.#follow(bought.id));
      }),
    );
  }

  /** The state, for any framework with `subscribe`, and `peek()` to read it once. */
  readonly state: ReadonlySignal<DropState> = computed(() => {
    const sale = this.#sale.value;
    const item = sale?.items.find(({ id }) => id === this.#itemId.value) ?? sale?.items[0] ?? null;
    return { sale, item, view: this.#view(sale, item), now: this.#now.value, problem: this.#problem() };
  });

  #problem(): Failure | Fault | null {
    const attempt = this.#purchase.value?.attempt.value;
    if (attempt?.step === 'refused') return attempt.failure;
    if (attempt?.step === 'broken') return attempt.fault;
    return this.#failure.value ?? this.#fault.value;
  }

  #view(sale: Sale | null, item: Item | null): View {
    if (!sale || !item) return { kind: this.#missing.value ? 'missing' : 'loading' };
    const attempt = this.#purchase.value?.attempt.value;
    switch (attempt?.step) {
      case 'check':
        return { kind: 'check', challenge: attempt.challenge, failure: attempt.failure };
      case 'sending':
        return { kind: 'sending', slow: attempt.slow };
      case 'room':
        return { kind: 'room', waiting: attempt.waiting };
      case 'queued':
        return { kind: 'queue' };
      case 'admitted':
        return { kind: 'buy' };
    }
    const order = this.#order.value;
    if (order?.status === 'PENDING_PAYMENT') return { kind: 'pay', order };
    if (order && !OVER.includes(order.status)) return { kind: 'order', order };
    return this.#open(sale, item);
  }

  /** What the user may do: the server's answer, corrected by the clock. */
  #open(sale: Sale, item: Item): View {
    const { viewer } = sale;
    const now = this.#now.value;
    const opens = Date.parse(viewer?.access?.from ?? sale.startsAt);
    const phase: Phase =
      now >= Date.parse(sale.endsAt) && sale.phase !== 'CANCELLED' ? 'ENDED' : sale.phase === 'UPCOMING' && now >= Date.parse(sale.startsAt) ? 'LIVE' : sale.phase;
    const closed: View = { kind: 'closed', phase, reason: viewer?.disabledReason ?? null };
    if (phase === 'ENDED' || phase === 'CANCELLED' || phase === 'PAUSED') return closed;
    if (now < opens) {
      const draw = this.#signedIn.value && sale.mode === 'RUSH' && sale.drawOpensAt !== null && now >= Date.parse(sale.drawOpensAt) && opens === Date.parse(sale.startsAt);
      return { kind: 'wait', at: opens, draw };
    }
    if (!this.#signedIn.value) return { kind: 'sign-in' };
    if (sale.mode === 'DRAW') {
      const draw = this.#draw(viewer, item.id);
      if (draw) return draw;
    }
    const soldOut = item.stock.level === 'SOLD_OUT';
    switch (viewer?.action) {
      case 'JOIN_WAITLIST':
      case 'ON_WAITLIST':
        return { kind: 'waitlist', joined: viewer.action === 'ON_WAITLIST' };
      case 'WATCH_QUEUE':
        return { kind: 'queue' };
      case 'IN_WAITING_ROOM':
        return { kind: 'room', waiting: null };
      case 'PAY':
      case 'VIEW_ORDER':
        return { kind: 'pay', order: null }; // until the order is read
      case 'BUY':
      case 'WAIT':
      case 'SIGN_IN':
        return soldOut ? { kind: 'closed', phase: 'SOLD_OUT', reason: null } : { kind: 'buy' };
      default:
        return closed;
    }
  }

  /** The part of a user in the draw of an item; null for one with an order. */
  #draw(viewer: Sale['viewer'], itemId: string): View | null {
    const entry = viewer?.items.find(({ item }) => item.id === itemId)?.waitlistEntry;
    const rank = entry?.rank ?? null;
    const step = ({ ENTERED: 'in', WAITING: 'drawn', OFFERED: 'offered' } as const)[entry?.status as 'ENTERED'];
    if (step) return { kind: 'draw', step, rank };
    const action = viewer?.action;
    if (action === 'PAY' || action === 'VIEW_ORDER' || action === 'WATCH_QUEUE') return null;
    return { kind: 'draw', step: action === 'ENTER_DRAW' ? 'enter' : 'closed', rank };
  }

  /** Reads the sale with its user, and follows it from then on. */
  async reload(): Promise<void> {
    const mine = ++this.#reading;
    const signedIn = this.client.session.signedIn();
    try {
      const by = this.name.startsWith('sal_') ? { id: this.name } : { slug: this.name };
      const { sale } = await this.client.request(OneSale, { by });
      if (mine !== this.#reading || this.#closed) return;
      this.#fault.value = null;
      this.#missing.value = !sale;
      if (sale) this.#take(sale, signedIn);
    } catch (thrown) {
      if (mine !== this.#reading || this.#closed) return;
      this.#fault.value = toFault(thrown);
      if (this.#fault.value.transient) this.#later(Math.max(POLL_MS, this.#fault.value.retryAfterMs));
    }
  }

  #later(ms: number): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.reload(), ms);
  }

  #take(sale: Sale, signedIn: boolean): void {
    this.#signedIn.value = signedIn && this.client.session.signedIn() && sale.viewer !== null;
    const first = !this.#sale.peek();
    this.#sale.value = sale;
    if (first) this.#followSale(sale.id);
    if (!this.#signedIn.peek() || this.#purchase.peek()) return;
    const purchase = new Purchase(this.client, sale.id, { changed: () => void this.reload() });
    this.#purchase.value = purchase;
    purchase.resume();
    const { orderTask, queueTicket } = sale.viewer ?? {};
    if (orderTask?.status === 'SUBMITTED') purchase.queued(orderTask.id);
    else if (queueTicket) purchase.found(queueTicket.id, queueTicket.item.id);
  }

  #followSale(id: string): void {
    const poll = async (): Promise<number> => {
      await this.reload();
      return POLL_MS;
    };
    const status = this.client.follow(SaleStatus, { id }, {
      next: ({ saleStatus: { kind, sale } }) => {
        this.#merge(sale);
        if (kind !== 'SNAPSHOT' && this.#signedIn.peek()) this.#later(Math.random() * SPREAD_MS);
        return false;
      },
      poll,
    });
    const stock = this.client.follow(SaleStock, { id }, {
      next: ({ saleStock: { items } }) => {
        const sale = this.#sale.peek();
        const of = (item: Item): Item['stock'] => {
          const next = items.find(({ id }) => id === item.id)?.stock;
          return next && next.revision > item.stock.revision ? next : item.stock;
        };
        if (sale) this.#sale.value = { ...sale, items: sale.items.map((item) => ({ ...item, stock: of(item) })) };
        return false;
      },
      poll: () => Promise.resolve(60_000), // the poll of the sale has the stock
    });
    this.#stops.push(status, stock);
  }

  #merge(next: PublicSale): void {
    const sale = this.#sale.peek();
    if (sale && (next.revision > sale.revision || (next.revision === sale.revision && next.serverTime > sale.serverTime))) {
      this.#sale.value = { ...sale, ...next };
    }
  }

  #follow(id: string): void {
    if (this.#followed?.id === id) return;
    this.#followed?.stop();
    const stop = followOrder(this.client, id, (order) => {
      const before = this.#order.peek();
      this.#order.value = order;
      if (before && before.status !== order.status && OVER.includes(order.status)) this.#later(SPREAD_MS);
    });
    this.#followed = { id, stop };
  }

  /** Chooses an item. */
  choose(itemId: string): void {
    this.#itemId.value = itemId;
  }

  /** Another user signed in, or the user signed out. */
  userChanged(): void {
    const sale = this.#sale.peek();
    if (sale) this.#sale.value = { ...sale, viewer: null };
    this.#purchase.peek()?.close();
    this.#purchase.value = null;
    this.#followed?.stop();
    this.#followed = null;
    this.#order.value = null;
    this.#failure.value = null;
    this.#signedIn.value = false;
    this.client.renew();
    void this.reload();
  }

  /** Buys the chosen item. `prepare` joins the draw before the opening. */
  buy(quantity = 1): void {
    const { item } = this.state.peek();
    this.#failure.value = null;
    this.#order.value = null;
    if (item) this.#purchase.peek()?.buy(item.id, quantity);
  }

  /** Joins the draw before the opening. */
  prepare(): void {
    const { item } = this.state.peek();
    if (item) this.#purchase.peek()?.prepare(item.id);
  }

  /** Takes the answer to the captcha. */
  answer(answer: Parameters<Purchase['answer']>[0]): void {
    this.#purchase.peek()?.answer(answer);
  }

  /** Closes the captcha or the problem. */
  dismiss(): void {
    this.#failure.value = null;
    this.#purchase.peek()?.dismiss();
  }

  /** Leaves the waiting room. */
  leave(): void {
    const attempt = this.#purchase.peek()?.attempt.peek();
    if (attempt?.step === 'room') attempt.waiting.leave();
    this.#purchase.peek()?.left();
  }

  /** Begins the payment of the order; the provider leads back to `returnUrl`. Null after a refusal, which is the problem then. */
  async pay(optionId: string, returnUrl?: string): Promise<Payment | null> {
    const order = this.#order.peek();
    if (!order) return null;
    try {
      const declined = order.payments.some(({ status }) => status === 'CLOSED');
      const payload = await (declined ? payAgain : payOrder)(this.client, order.id, optionId, returnUrl);
      this.#failure.value = payload?.userErrors[0] ?? null;
      return payload?.payment ?? null;
    } catch (thrown) {
      if (thrown instanceof Refusal) this.#failure.value = thrown.failure;
      else this.#fault.value = toFault(thrown);
      return null;
    }
  }

  /** Ends all that runs. The client stays open. */
  close(): void {
    this.#closed = true;
    this.#reading++;
    this.#purchase.peek()?.close();
    this.#followed?.stop();
    clearTimeout(this.#timer);
    for (const stop of this.#stops) stop();
  }
}
