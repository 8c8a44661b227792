/**
 * An attempt to buy, from the press of the button to the task. One object per
 * sale and tab; leaving the page does not stop it, not even in the waiting room;
 * reloading resumes it.
 *
 *   idle ─press→ check ─answer→ sending ─task→ queued ─order→ bought
 *                  ↑ wrong answer, path lapsed │
 *                  └───────────────────────────┤─→ refused (the server said no)
 *                                              ├─→ broken  (no answer; same key again)
 *                                              └─→ room    (all permits are out)
 *   room ─turn comes→ sending; without a press, for a place taken before the opening: turn ─press→ sending
 */
import { effect, signal, type Signal } from '@preact/signals';
import { sales, tasks } from '../api/stores';
import { backoff, jitter } from '../api/connection';
import { now } from '../api/clock';
import { Fault, toFault } from '../api/fault';
import { request } from '../api/request';
import { onSwitch } from '../api/session';
import type { Challenge, Failure, Task } from '../api/types';
import { IssuePath, PlaceOrder } from '../documents/buyer';
import { EnterQueue } from '../documents/queue';
import { share } from './shared';
import { keepPlace, place, waitingFor, type Place } from './places';
import { keep, pending, press, settle, type Press } from './press';
import { tell, Waiting, type Ticket } from './waiting';

/** How the attempt stands. */
export type Attempt =
  | { step: 'idle' }
  | { step: 'check'; challenge: Challenge | null; failure: Failure | null }
  | { step: 'sending'; slow: boolean }
  | { step: 'room'; waiting: Waiting }
  | { step: 'turn'; itemId: string; path: Path }
  | { step: 'queued'; taskId: string }
  | { step: 'bought' }
  | { step: 'refused'; failure: Failure }
  | { step: 'broken'; fault: Fault };

/** An answered captcha that waits for its use. */
export interface Answer {
  challengeId: string;
  answer: string;
  /** Server time in ms. */
  expires: number;
}

/** How long to go on without an answer before the person is outcome, in ms. */
const PATIENCE_MS = 30_000;
/** Longest wait between two tries, in ms: stock does not wait for us. */
const LONGEST_WAIT_MS = 3_000;
/** Use nothing that lapses sooner than this, in ms. */
const MARGIN_MS = 3_000;

const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms));

/** Outcome of one request: a result, a retry after so many ms, or a refusal. */
type Outcome<T> = { done: T } | { again: number } | { failure: Failure };

/** A path token with its expiry. */
export type Path = NonNullable<Press['path']>;

/** What a solved captcha gives: a path, or a ticket of the waiting room. */
type Admission = { path: Path } | { ticketId: string };

/** The attempt of one sale. */
export class Purchase {
  readonly attempt: Signal<Attempt> = signal({ step: 'idle' });
  /** A captcha answered ahead of the press. */
  readonly ready: Signal<Answer | null> = signal(null);
  #press: Press | null = null;
  /** The item that a check is done for before the opening. */
  #early: string | null = null;
  /** The turn that waits for a press. */
  #turn: { itemId: string; path: Path } | null = null;
  /** Stops sharing the place in the waiting room with other tabs. */
  #unshare: () => void = () => {};

  constructor(
    readonly saleId: string,
    /** Called when the server refused: the sale may have changed for the person. */
    public changed: () => void,
  ) {}

  /** Whether the button is taken. */
  get busy(): boolean {
    return ['sending', 'queued', 'room'].includes(this.attempt.peek().step);
  }

  /** Buys; with an offer of the waitlist, without a check. A second press while the first is under way does nothing. */
  press(itemId: string, quantity: number, offer: Path | null = null): void {
    if (this.busy) return;
    this.#press = press(this.saleId, itemId, quantity);
    if (offer) this.#press = keep(this.saleId, { ...this.#press, path: offer });
    if (this.#turn?.itemId === itemId) {
      this.#press = keep(this.saleId, { ...this.#press, path: this.#turn.path });
      this.#endTurn();
    }
    if (this.#usable(this.#press.path)) return void this.#place();
    const ready = this.ready.peek();
    if (ready && ready.expires - now() > MARGIN_MS) return void this.#enter(ready);
    this.attempt.value = { step: 'check', challenge: null, failure: null };
  }

  /** Takes the answer to the captcha; sends at once when the button was pressed. */
  answer(answer: Answer): void {
    if (this.busy) return;
    if (this.attempt.peek().step === 'check' && this.#press) void this.#enter(answer);
    else if (this.#early) void this.#join(this.#early, answer);
    else this.#keepAnswer(answer);
  }

  #keepAnswer(answer: Answer): void {
    this.ready.value = answer;
    this.attempt.value = { step: 'idle' };
  }

  /** Opens the captcha before the sale does. */
  prepare(itemId: string): void {
    if (this.busy) return;
    this.#press = null;
    this.#early = itemId;
    this.attempt.value = { step: 'check', challenge: null, failure: null };
  }

  /** Puts the captcha, the refusal or the fault away. */
  dismiss(): void {
    this.#early = null;
    if (this.busy) return;
    this.attempt.value = this.#turn && this.#usable(this.#turn.path) ? { step: 'turn', ...this.#turn } : { step: 'idle' };
  }

  /** Goes on with a press that a reload cut off. */
  resume(): void {
    if (this.attempt.peek().step !== 'idle') return;
    const before = pending(this.saleId);
    const kept = place(this.saleId);
    if (before && this.#usable(before.path)) {
      this.#press = before;
      void this.#place();
    } else if (kept) {
      if (kept.pressed) this.#press = before;
      this.#wait(kept);
    }
  }

  /** The task of the person here, wherever it was started. */
  queued(taskId: string): void {
    this.attempt.value = { step: 'queued', taskId };
  }

  /** The task came to its end. */
  ended(task: Task): void {
    this.attempt.value = task.failure ? { step: 'refused', failure: task.failure } : { step: 'bought' };
  }

  /** Nobody knows the task any more: the person may press again. */
  lost(): void {
    this.attempt.value = { step: 'broken', fault: new Fault('UNAVAILABLE', '') };
  }

  /** The place in the waiting room, or the turn, is gone. */
  left(): void {
    settle(this.saleId);
    this.#unshare();
    share(this.saleId, null);
    this.#endTurn();
    this.attempt.value = { step: 'idle' };
    this.changed();
  }

  /** Stops what goes on by itself: somebody else is here. */
  close(): void {
    const attempt = this.attempt.peek();
    this.#unshare();
    if (attempt.step === 'room') attempt.waiting.end();
  }

  /** The turn has come: goes on with the press, or waits for it. */
  #admitted({ itemId, pressed, title, slug }: Place, path: Path): void {
    if (!pressed) {
      this.#turn = { itemId, path }; // the place is kept: it brings the turn back after a reload
      this.attempt.value = { step: 'turn', itemId, path };
      share(this.saleId, { title, slug, orderId: null, kind: 'turn', until: Date.parse(path.expiresAt), amount: null });
      return;
    }
    this.#endTurn();
    this.#press = keep(this.saleId, { ...(this.#press ?? press(this.saleId, itemId, 1)), path });
    void this.#place();
  }

  #endTurn(): void {
    this.#turn = null;
    keepPlace(this.saleId, null);
  }

  #usable(path: Press['path']): path is NonNullable<Press['path']> {
    return path !== null && Date.parse(path.expiresAt) - now() > MARGIN_MS;
  }

  async #enter({ challengeId, answer }: Answer): Promise<void> {
    const current = this.#press!;
    this.ready.value = null;
    this.#endTurn(); // the server takes a turn away from whoever gets another path
    const input = { itemId: current.itemId, captcha: { challengeId, answer } };
    const outcome = await this.#exchange<Admission>(async () => {
      const { issueSeckillPath: payload } = await request(IssuePath, { input });
      if (payload?.path) return { done: { path: payload.path } };
      if (payload?.ticket) return { done: { ticketId: payload.ticket.id } };
      return this.#classify(payload?.userErrors[0]);
    });
    if (!outcome) return;
    if ('failure' in outcome) return this.#refuse(outcome.failure);
    if ('ticketId' in outcome.done) this.#wait(this.#placeOf(outcome.done.ticketId, current.itemId, true));
    else {
      this.#press = keep(this.saleId, { ...current, path: outcome.done.path });
      await this.#place();
    }
  }

  /** Takes a place in the waiting room before the opening, for the draw. */
  async #join(itemId: string, answer: Answer): Promise<void> {
    const input = { itemId, captcha: { challengeId: answer.challengeId, answer: answer.answer } };
    const outcome = await this.#exchange<string>(async () => {
      const { enterQueue: payload } = await request(EnterQueue, { input });
      return payload?.ticket ? { done: payload.ticket.id } : this.#classify(payload?.userErrors[0]);
    });
    if (!outcome) return;
    if ('done' in outcome) this.#wait(this.#placeOf(outcome.done, itemId, false));
    else if (outcome.failure.__typename === 'SaleNotOpenError') this.#keepAnswer(answer); // no room yet; nothing was used up
    else this.#refuse(outcome.failure);
  }

  #placeOf(ticketId: string, itemId: string, pressed: boolean): Place {
    const sale = sales.of(this.saleId).peek();
    return { ticketId, itemId, pressed, title: sale?.title ?? '', slug: sale?.slug ?? '' };
  }

  #wait(kept: Place): void {
    keepPlace(this.saleId, kept);
    const waiting = new Waiting(kept.ticketId, (ticket) => this.#called(kept, ticket));
    this.attempt.value = { step: 'room', waiting };
    this.#unshare();
    this.#unshare = effect(() => {
      const kind = waiting.ticket.value && !waiting.ticket.value.position ? 'joined' : 'room';
      share(this.saleId, { title: kept.title, slug: kept.slug, orderId: null, kind, until: null, amount: null });
    });
  }

  /** The place in the waiting room has become a turn, or nothing. */
  #called(kept: Place, ticket: Ticket | null): void {
    tell(ticket, kept.title);
    this.#unshare();
    if (ticket?.status === 'ADMITTED' && ticket.path) this.#admitted(kept, ticket.path);
    else this.left();
  }

  async #place(): Promise<void> {
    const { key, itemId, quantity, path } = this.#press!;
    const input = { idempotencyKey: key, itemId, quantity, pathToken: path!.token };
    const outcome = await this.#exchange<Task>(async () => {
      const { placeOrder: payload } = await request(PlaceOrder, { input });
      return payload?.orderTask ? { done: payload.orderTask } : this.#classify(payload?.userErrors[0]);
    });
    if (!outcome) return;
    if ('failure' in outcome) return this.#refuse(outcome.failure);
    settle(this.saleId);
    tasks.put(outcome.done.id, outcome.done);
    this.queued(outcome.done.id);
  }

  /** Asks until there is an answer; null when patience ran out. */
  async #exchange<T>(ask: () => Promise<Outcome<T>>): Promise<{ done: T } | { failure: Failure } | null> {
    const since = performance.now();
    this.attempt.value = { step: 'sending', slow: false };
    for (let tries = 0; ; tries++) {
      let pause: number;
      try {
        const outcome = await ask();
        if (!('again' in outcome)) return outcome;
        pause = outcome.again;
      } catch (thrown) {
        const fault = toFault(thrown);
        if (!fault.passing || performance.now() - since > PATIENCE_MS) {
          this.attempt.value = { step: 'broken', fault };
          return null;
        }
        pause = Math.max(jitter(fault.retryAfterMs), Math.min(backoff(tries), LONGEST_WAIT_MS));
      }
      this.attempt.value = { step: 'sending', slow: true };
      await wait(pause);
    }
  }

  /** Whether a refusal is for good, or only for a moment. */
  #classify(failure: Failure | undefined): { again: number } | { failure: Failure } {
    if (!failure) throw new Fault('INTERNAL', 'neither answer nor reason');
    if (failure.__typename === 'RateLimitedError' && failure.retryAfterMs < PATIENCE_MS) {
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
    switch (failure.code) {
      case 'CAPTCHA_INVALID':
      case 'CAPTCHA_REQUIRED': {
        const challenge = failure.__typename === 'CaptchaError' ? failure.challenge : null;
        this.attempt.value = { step: 'check', challenge, failure };
        return;
      }
      case 'PATH_INVALID':
        if (this.#press) this.#press = keep(this.saleId, { ...this.#press, path: null });
        this.attempt.value = { step: 'check', challenge: null, failure };
        return;
      default:
        settle(this.saleId);
        this.attempt.value = { step: 'refused', failure };
        this.changed();
    }
  }
}

const purchases = new Map<string, Purchase>();

/** The purchase of a sale, made at the first call. */
export function purchaseOf(saleId: string, changed: () => void): Purchase {
  let found = purchases.get(saleId);
  if (!found) purchases.set(saleId, (found = new Purchase(saleId, changed)));
  found.changed = changed; // the page may be another one than that of the first call
  return found;
}

/** Goes on waiting in each room that a reload of this tab cut off, on whatever page it is. */
export function resumePlaces(): void {
  for (const saleId of waitingFor()) purchaseOf(saleId, () => {}).resume();
}

onSwitch(() => {
  for (const purchase of purchases.values()) purchase.close();
  purchases.clear();
});
