/**
 * An attempt to buy, from the click to the order. Reloading resumes it: its
 * idempotency key and its ticket of the waiting room are kept.
 *
 *   idle ──buy──→ check ─answer→ sending ─task→ queued ─order→ bought
 *                  ↑ wrong answer, path expired│         └─→ refused
 *                  └───────────────────────────┤─→ refused (the server said no)
 *                                              ├─→ broken  (no answer; same key again)
 *                                              └─→ room    (all permits are out)
 *   room ─admitted→ sending; without buy(), after an entry before the opening: admitted ─buy→ sending
 */
import { signal, type Signal } from '@preact/signals-core';
import { backoff, jitter } from './backoff.ts';
import type { Client } from './client.ts';
import { IssuePath, PlaceOrder } from './documents/purchase.ts';
import { EnterQueue } from './documents/queue.ts';
import { Fault, toFault } from './fault.ts';
import { storeDrawEntry, storeTicket, storedTicket, type StoredTicket } from './tickets.ts';
import { savePendingAttempt, pendingAttempt, beginAttempt, randomKey, clearPendingAttempt, type PendingAttempt } from './pending.ts';
import { followTask } from './task.ts';
import type { Challenge, Failure, TaskPosition, Task, Ticket } from './types.ts';
import { Waiting } from './waiting.ts';

/** The state of the attempt. */
export type Attempt =
  | { step: 'idle' }
  | { step: 'check'; challenge: Challenge | null; failure: Failure | null }
  | { step: 'sending'; slow: boolean }
  | { step: 'room'; waiting: Waiting }
  | { step: 'admitted'; itemId: string; path: Path }
  | { step: 'queued'; taskId: string }
  | { step: 'bought'; task: Task; at: number }
  | ({ step: 'refused'; failure: Failure } & Ask)
  | ({ step: 'broken'; fault: Fault } & Ask);

/** What was asked for, and when the server's answer arrived, in ms of server time: a state that was read later decides. */
export interface Ask {
  /** The item; null where it is not known, as of a task that was begun elsewhere. */
  itemId: string | null;
  quantity: number;
  at: number;
}

/** An answered captcha that was not used yet. */
export interface Answer {
  challengeId: string;
  answer: string;
  /** Server time in ms. */
  expires: number;
  /** Worked out before the opening: good for the draw only. */
  early: boolean;
}

/** How long retryable faults are retried before the attempt is `broken`, in ms. */
const RETRY_MS = 30_000;
/** Upper bound of the backoff between retries, in ms. Short, because other buyers take the stock meanwhile. */
const LONGEST_WAIT_MS = 3_000;
/** Tokens that expire sooner than this, in ms, are not used. */
const MARGIN_MS = 3_000;

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Outcome of one request: a result, a retry after so many ms, or a refusal. */
type Outcome<T> = { done: T } | { again: number } | { failure: Failure };

/** A path token with its expiry. */
export type Path = NonNullable<PendingAttempt['path']>;

/** What a solved captcha gives: a path, or a ticket of the waiting room. */
type Admission = { path: Path } | { ticketId: string };

/** What a page adds to a purchase. */
export interface Hooks {
  /** After a refusal or the end of the task: the sale may have changed for the user. */
  changed?(): void;
  /** Each state of the order task, with its position in the queue. */
  task?(task: Task, line: TaskPosition | null): void;
  /** The task ended, with an order or a failure. */
  ended?(task: Task): void;
  /** Title and slug of the sale, to be stored with a ticket. */
  describe?(): { title: string; slug: string };
  /** The ticket of a waiting room is followed; the returned function is called when it no longer is. */
  waiting?(stored: StoredTicket, waiting: Waiting): () => void;
  /** The buyer was admitted, or the ticket ended; null is an unknown ticket. */
  called?(stored: StoredTicket, ticket: Ticket | null): void;
  /** The ticket or the admission has ended. */
  left?(): void;
  /** The server refused a step of the attempt. */
  refused?(failure: Failure): void;
}

/** The attempt of one sale. */
export class Purchase {
  readonly attempt: Signal<Attempt> = signal({ step: 'idle' });
  /** A captcha answered before the button was pressed. */
  readonly ready: Signal<Answer | null> = signal(null);
  #pending: PendingAttempt | null = null;
  /** The item of a captcha that is answered before the opening. */
  #early: string | null = null;
  /** The turn that was not used yet. */
  #admission: { itemId: string; path: Path } | null = null;
  /** Notifies the page that the ticket is no longer followed. */
  #unwait: () => void = () => {};
  #unfollow: () => void = () => {};
  /** Tasks and tickets that have ended: a state that was read before is ignored. */
  readonly #over = new Set<string>();
  #closed = false;

  constructor(
    readonly client: Client,
    readonly saleId: string,
    public hooks: Hooks = {},
  ) {}

  get #store() {
    return this.client.store;
  }

  /** Whether an attempt is under way. */
  get busy(): boolean {
    return ['sending', 'queued', 'room'].includes(this.attempt.peek().step);
  }

  /** Buys; with an offer of the waitlist, without a captcha. Does nothing while an attempt is under way. */
  buy(itemId: string, quantity: number, offer: Path | null = null): void {
    if (this.busy) return;
    this.#pending = beginAttempt(this.#store, this.saleId, itemId, quantity);
    if (offer) this.#pending = savePendingAttempt(this.#store, this.saleId, { ...this.#pending, path: offer });
    if (this.#admission?.itemId === itemId) {
      this.#pending = savePendingAttempt(this.#store, this.saleId, { ...this.#pending, path: this.#admission.path });
      this.#clearAdmission();
    }
    if (this.#usable(this.#pending.path)) return void this.#place();
    const ready = this.ready.peek();
    if (ready && !ready.early && ready.expires - this.client.clock.now() > MARGIN_MS) return void this.#enter(ready);
    this.attempt.value = { step: 'check', challenge: null, failure: null };
  }

  /** Takes the answer to the captcha; continues at once when the button was pressed. */
  answer(answer: Answer): void {
    if (this.busy) return;
    if (this.attempt.peek().step !== 'check') this.ready.value = answer; // of a captcha that was closed
    else if (this.#pending) void this.#enter(answer);
    else if (this.#early) void this.#join(this.#early, answer);
    else this.#keepAnswer(answer);
  }

  #keepAnswer(answer: Answer): void {
    this.ready.value = answer;
    this.attempt.value = { step: 'idle' };
  }

  /** Opens the captcha before the sale opens. */
  prepare(itemId: string): void {
    if (this.busy) return;
    this.#pending = null;
    this.#early = itemId;
    this.attempt.value = { step: 'check', challenge: null, failure: null };
  }

  /** Closes the captcha, the refusal or the fault. */
  dismiss(): void {
    this.#early = null;
    if (this.busy) return;
    this.attempt.value = this.#admission && this.#usable(this.#admission.path) ? { step: 'admitted', ...this.#admission } : { step: 'idle' };
  }

  /** Resumes the attempt that a reload interrupted. */
  resume(): void {
    if (this.attempt.peek().step !== 'idle') return;
    const before = pendingAttempt(this.#store, this.saleId);
    const kept = storedTicket(this.#store, this.saleId);
    if (before && this.#usable(before.path)) {
      this.#pending = before;
      void this.#place();
    } else if (kept) {
      if (kept.pressed) this.#pending = before;
      this.#wait(kept);
    }
  }

  /**
   * The user's order task in this sale, started anywhere: follows it to its end. Does nothing while another attempt is
   * under way, or when the task has ended.
   */
  queued(taskId: string): void {
    if (!this.busy && !this.#over.has(taskId)) this.#follow(taskId);
  }

  #follow(taskId: string): void {
    this.attempt.value = { step: 'queued', taskId };
    this.#unfollow();
    this.#unfollow = followTask(this.client, taskId, {
      next: (task, line) => this.hooks.task?.(task, line),
      ended: (task) => this.#ended(task),
      lost: () => this.#lost(taskId),
    });
  }

  /** Resumes the user's ticket of the waiting room from another device. */
  found(ticketId: string, itemId: string): void {
    if (this.attempt.peek().step === 'idle' && !this.#over.has(ticketId)) this.#wait(this.#placeOf(ticketId, itemId, false));
  }

  /** The task ended. */
  #ended(task: Task): void {
    this.#over.add(task.id);
    const at = this.client.clock.now();
    this.attempt.value = task.failure
      ? { step: 'refused', failure: task.failure, itemId: task.item?.id ?? null, quantity: task.quantity, at }
      : { step: 'bought', task, at: this.client.clock.latest() };
    this.hooks.ended?.(task);
    this.hooks.changed?.();
  }

  /** The task is unknown to the server: the user may try again. */
  #lost(taskId: string): void {
    this.#over.add(taskId);
    this.#break(new Fault('UNAVAILABLE', ''));
    this.hooks.changed?.();
  }

  #break(fault: Fault): void {
    this.attempt.value = { step: 'broken', fault, ...this.#asked() };
  }

  #asked(): Ask {
    return { itemId: this.#pending?.itemId ?? this.#early, quantity: this.#pending?.quantity ?? 1, at: this.client.clock.now() };
  }

  /** The ticket or the admission was left, or is unknown. */
  left(): void {
    this.#leave({ step: 'idle' });
  }

  /** The admission to an item expired unused. */
  expired(itemId: string): void {
    const failure: Failure = { __typename: 'BasicError', code: 'PATH_INVALID', message: '', path: null };
    if (this.#leave({ step: 'refused', failure, itemId, quantity: 1, at: this.client.clock.now() })) this.hooks.refused?.(failure);
  }

  #leave(then: Attempt): boolean {
    if (!['room', 'admitted'].includes(this.attempt.peek().step)) return false; // the order is being sent already
    clearPendingAttempt(this.#store, this.saleId);
    this.#unwait();
    this.hooks.left?.();
    this.#clearAdmission();
    this.attempt.value = then;
    this.hooks.changed?.();
    return true;
  }

  /** Stops background work, after another user signed in. */
  close(): void {
    const attempt = this.attempt.peek();
    this.#closed = true;
    this.#unwait();
    this.#unfollow();
    if (attempt.step === 'room') attempt.waiting.end();
  }

  /** Handles an admission: continues the attempt, or waits for buy(). */
  #admitted({ itemId, pressed }: StoredTicket, path: Path): void {
    if (!pressed) {
      this.#admission = { itemId, path }; // the ticket is kept: it restores the admission after a reload
      this.attempt.value = { step: 'admitted', itemId, path };
      return;
    }
    this.#clearAdmission();
    this.#pending = savePendingAttempt(this.#store, this.saleId, { ...(this.#pending ?? beginAttempt(this.#store, this.saleId, itemId, 1)), path });
    void this.#place();
  }

  #clearAdmission(): void {
    this.#admission = null;
    storeTicket(this.#store, this.saleId, null);
  }

  #usable(path: PendingAttempt['path']): path is NonNullable<PendingAttempt['path']> {
    return path !== null && Date.parse(path.expiresAt) - this.client.clock.now() > MARGIN_MS;
  }

  async #enter({ challengeId, answer }: Answer): Promise<void> {
    const current = this.#pending!;
    this.ready.value = null;
    this.#clearAdmission(); // a new path token replaces that of the admission on the server
    const input = { itemId: current.itemId, captcha: { challengeId, answer } };
    const outcome = await this.#exchange<Admission>(async () => {
      const { issueSeckillPath: payload } = await this.client.request(IssuePath, { input });
      if (payload?.path) return { done: { path: payload.path } };
      if (payload?.ticket) return { done: { ticketId: payload.ticket.id } };
      return this.#classify(payload?.userErrors[0]);
    });
    if (!outcome) return;
    if ('failure' in outcome) return this.#refuse(outcome.failure);
    if ('ticketId' in outcome.done) this.#wait(this.#placeOf(outcome.done.ticketId, current.itemId, true));
    else {
      this.#pending = savePendingAttempt(this.#store, this.saleId, { ...current, path: outcome.done.path });
      await this.#place();
    }
  }

  /** Joins the draw: enters the waiting room before the opening. */
  async #join(itemId: string, answer: Answer): Promise<void> {
    const drawNonce = randomKey();
    const input = { itemId, captcha: { challengeId: answer.challengeId, answer: answer.answer }, drawNonce };
    const outcome = await this.#exchange<string>(async () => {
      const { enterQueue: payload } = await this.client.request(EnterQueue, { input });
      if (this.#closed) return { again: 0 };
      const commitment = payload?.ticket?.item.draw?.commitment;
      if (payload?.ticket && commitment) storeDrawEntry(this.#store, this.saleId, { ticketId: payload.ticket.id, itemId, nonce: drawNonce, commitment });
      return payload?.ticket ? { done: payload.ticket.id } : this.#classify(payload?.userErrors[0]);
    });
    if (!outcome) return;
    if ('done' in outcome) this.#wait({ ...this.#placeOf(outcome.done, itemId, false), nonce: drawNonce });
    else if (outcome.failure.__typename === 'SaleNotOpenError') this.#keepAnswer(answer); // the waiting room is not open yet; the captcha was not used
    else this.#refuse(outcome.failure);
  }

  #placeOf(ticketId: string, itemId: string, pressed: boolean): StoredTicket {
    return { ticketId, itemId, pressed, title: '', slug: '', ...this.hooks.describe?.() };
  }

  #wait(kept: StoredTicket): void {
    storeTicket(this.#store, this.saleId, kept);
    const waiting = new Waiting(this.client, kept.ticketId, (ticket) => this.#called(kept, ticket));
    this.attempt.value = { step: 'room', waiting };
    this.#unwait();
    this.#unwait = this.hooks.waiting?.(kept, waiting) ?? (() => {});
  }

  /** The buyer was admitted, or the ticket ended. */
  #called(kept: StoredTicket, ticket: Ticket | null): void {
    this.#unwait();
    this.#over.add(kept.ticketId);
    this.hooks.called?.(kept, ticket);
    if (ticket?.status === 'ADMITTED' && ticket.path) this.#admitted(kept, ticket.path);
    else if (ticket?.endReason === 'PATH_INVALID') this.expired(kept.itemId);
    else this.left();
  }

  async #place(): Promise<void> {
    const { key, itemId, quantity, path } = this.#pending!;
    const input = { idempotencyKey: key, itemId, quantity, pathToken: path!.token };
    const outcome = await this.#exchange<Task>(async () => {
      const { placeOrder: payload } = await this.client.request(PlaceOrder, { input });
      return payload?.orderTask ? { done: payload.orderTask } : this.#classify(payload?.userErrors[0]);
    });
    if (!outcome) return;
    if ('failure' in outcome) return this.#refuse(outcome.failure);
    clearPendingAttempt(this.#store, this.saleId);
    this.hooks.task?.(outcome.done, null);
    this.#follow(outcome.done.id);
  }

  /** Retries until there is an outcome; null after a fault that is not retryable, after RETRY_MS of faults, and once the purchase is closed. */
  async #exchange<T>(ask: () => Promise<Outcome<T>>): Promise<{ done: T } | { failure: Failure } | null> {
    const since = performance.now();
    this.attempt.value = { step: 'sending', slow: false };
    for (let tries = 0; ; tries++) {
      let pause: number;
      try {
        const outcome = await ask();
        if (this.#closed) return null;
        if (!('again' in outcome)) return outcome;
        pause = outcome.again;
      } catch (thrown) {
        if (this.#closed) return null;
        const fault = toFault(thrown);
        if (!fault.transient || performance.now() - since > RETRY_MS) {
          this.#break(fault);
          return null;
        }
        pause = Math.max(jitter(fault.retryAfterMs), Math.min(backoff(tries), LONGEST_WAIT_MS));
      }
      this.attempt.value = { step: 'sending', slow: true };
      await wait(pause);
      if (this.#closed) return null;
    }
  }

  /** Classifies a refusal as final or retryable. */
  #classify(failure: Failure | undefined): { again: number } | { failure: Failure } {
    if (!failure) throw new Fault('INTERNAL', 'neither answer nor reason');
    if (failure.__typename === 'RateLimitedError' && failure.retryAfterMs < RETRY_MS) {
      return { again: failure.retryAfterMs * (1 + Math.random() * 0.2) };
    }
    if (failure.code === 'IDEMPOTENCY_IN_PROGRESS') return { again: jitter(400) };
    if (failure.__typename === 'SaleNotOpenError' && failure.phase === 'UPCOMING' && failure.startsAt) {
      const left = Date.parse(failure.startsAt) - Date.parse(failure.serverTime);
      if (left < 5_000) return { again: Math.max(left, 0) + 50 + Math.random() * 200 };
    }
    return { failure };
  }

  #refuse(failure: Failure): void {
    this.hooks.refused?.(failure);
    switch (failure.code) {
      case 'CAPTCHA_INVALID':
      case 'CAPTCHA_REQUIRED': {
        const challenge = failure.__typename === 'CaptchaError' ? failure.challenge : null;
        this.attempt.value = { step: 'check', challenge, failure };
        return;
      }
      case 'PATH_INVALID':
        if (this.#pending) this.#pending = savePendingAttempt(this.#store, this.saleId, { ...this.#pending, path: null });
        this.attempt.value = { step: 'check', challenge: null, failure };
        return;
      default:
        clearPendingAttempt(this.#store, this.saleId);
        this.attempt.value = { step: 'refused', failure, ...this.#asked() };
        this.hooks.changed?.();
    }
  }
}
