/** The status of a buyer in a sale: one title, one line below it, one deadline. Every screen that shows the status uses it. */
import { taskPositions } from '../api/stores';
import { faultText, count, explain, moment, money, span, t, timeOfDay, times, waitText } from '../i18n/text';
import { LAST_MS } from '../ui/countdown';
import { entriesClosed, entryOf, offerOf, opensFor, phaseAt, type Button, type Situation } from './button';
import { shownFailure, type Failed } from './refusal';
import type { Ticket } from '@seckill/client/types';

/** What the buyer sees. */
export interface Status {
  title: string;
  detail: string | null;
  /** The instant that is counted down to, in ms of server time. */
  until: number | null;
  /** Whether units or money are lost at that instant: then the time left is never rounded up. */
  strict: boolean;
  tone: 'plain' | 'good' | 'warn' | 'danger';
  /** Whether the button says it all: the title is for screen readers only. */
  quiet?: boolean;
  /** The part of the title that is shown large: how many are ahead. */
  ahead: string | null;
}

/** A payment deadline that is nearer than this, in ms, is a warning. */
export const WARN_MS = 120_000;

/** The words for items without a unit to sell. */
const soldOut = (sale: Situation['sale']): string => t(sale.mode === 'DRAW' ? 'draw.given' : 'button.SOLD_OUT');

const plain = (title: string, detail: string | null = null, until: number | null = null): Status => ({
  title,
  detail,
  until,
  strict: false,
  tone: 'plain',
  ahead: null,
});

/** The status of a waiting buyer; `words` is the key of the title. */
const placed = (words: 'queue.ahead' | 'waitlist.ahead', ahead: number, detail: string): Status => {
  const n = count(ahead);
  return { ...plain(t(words, { n }), detail), ahead: n };
};

/** The status of a buyer in the waiting room. */
export function waitingRoomStatus(ticket: Ticket | null, ahead: number | null): Status {
  const position = ticket?.position;
  if (!position || ahead === null) return plain(t('room.title'), t('room.lead'));
  const chance = position.chancePercent === null ? null : t('queue.chance', { n: position.chancePercent });
  const time = position.wait
    ? t('queue.between', { from: span(position.wait.fromSeconds), to: span(position.wait.toSeconds) })
    : position.chancePercent === 0 ? null : t('queue.counting'); // no time without a chance
  const detail = [time, chance].filter(Boolean).join(' · ');
  return ahead ? placed('queue.ahead', ahead, detail) : plain(t('queue.next'), detail);
}

/** The text for the position of the order task in the queue. */
function queueText({ attempt, sale }: Situation): string {
  const id = attempt.step === 'queued' ? attempt.taskId : sale.viewer?.orderTask?.id;
  const place = id ? taskPositions.value[id] : null;
  if (!place?.ahead) return t('queue.lead');
  const n = count(place.ahead);
  return place.estimate === null ? t('queue.line', { n }) : t('queue.lineEta', { n, time: span(place.estimate) });
}

function beforeOpening(at: Situation, detail: string): Status {
  const until = opensFor(at.sale);
  return plain(t(until - at.now <= LAST_MS ? 'sheet.last' : 'sheet.upcoming'), detail, until);
}

function buying(at: Situation): Status {
  const { attempt, sale, itemId } = at;
  if (attempt.step === 'admitted') {
    return { ...plain(t('room.yours'), null, Date.parse(attempt.path.expiresAt)), strict: true, tone: 'good' };
  }
  const offer = offerOf(sale, itemId);
  if (offer) return { ...plain(t('waitlist.offer'), t('waitlist.offerUntil'), Date.parse(offer.expiresAt)), strict: true, tone: 'good' };
  return { ...plain(t('sheet.live')), quiet: true };
}

function closed(at: Situation, reason: string | null, missed: string | null): Status {
  const phase = phaseAt(at.sale, at.now);
  const detail = at.sale.notice ?? missed;
  if (phase === 'LIVE' || phase === 'UPCOMING' || phase === 'SOLD_OUT') return plain(reason && reason !== detail ? reason : soldOut(at.sale), detail);
  return { ...plain(t(`button.${phase}`), detail), tone: phase === 'PAUSED' ? 'warn' : 'plain' };
}

function failure(failed: Failed, button: Button): Status {
  if (failed.step === 'broken') return { ...plain(faultText(failed.fault), t('fault.unsure')), tone: 'danger' };
  const { code } = failed.failure;
  const detail = code === 'SOLD_OUT' ? t('soldOut.lead') : code === 'PATH_INVALID' && button.kind === 'buy' ? t('room.again') : null;
  return { ...plain(explain(failed.failure), detail), tone: 'danger' };
}

/** How many have entered the draw of the item. */
const entriesOf = ({ sale, itemId }: Situation): number => sale.items.find(({ id }) => id === itemId)?.drawing?.entries ?? 0;

/** What is authorized for an entry of the item: the price of its units, or of those that are chosen. */
function amountOf({ sale, itemId, quantity }: Situation): string {
  const { price } = sale.items.find(({ id }) => id === itemId)!;
  return money(times(price, entryOf(sale, itemId)?.quantity ?? quantity));
}

/** The status of a buyer who may enter the draw, also of a visitor. */
function entering(at: Situation, lead = t('draw.enterLead', { n: count(entriesOf(at)) })): Status {
  if (entriesClosed(at.sale, at.now)) return plain(t('draw.closed'), t('draw.entries', { n: count(entriesOf(at)) }));
  return plain(t('draw.enter'), lead, Date.parse(at.sale.entriesCloseAt!));
}

/** The status of a buyer in the draw, until it is drawn. */
function drawing(at: Situation): Status {
  const { sale, itemId, now } = at;
  const entries = t('draw.entries', { n: count(entriesOf(at)) });
  if (!entriesClosed(sale, now)) return { ...plain(t(entryOf(sale, itemId)?.card === 'AUTHORIZED' ? 'draw.inCard' : 'draw.in'), entries, Date.parse(sale.entriesCloseAt!)), tone: 'good' };
  const roundAt = sale.items.find(({ id }) => id === itemId)?.drawing?.roundAt;
  if (!roundAt) return { ...plain(t('draw.closed'), entries), tone: 'good' };
  const until = Date.parse(roundAt);
  if (now < until) return { ...plain(t('draw.soon'), entries, until), tone: 'good' };
  return { ...plain(t('draw.soon'), t(now < until + LATE_MS ? 'draw.reading' : 'draw.late')), tone: 'good' };
}

/** How long after its time a random value counts as late, in ms. */
const LATE_MS = 60_000;

/** The status while the next attempt has to wait. */
function blocked({ attempt, now }: Situation, until: number): Status {
  const cause = attempt.step === 'refused' && attempt.failure.__typename === 'RateLimitedError' ? attempt.failure.cause : 'TOO_MANY_CALLS';
  return { ...plain(t(`wait.${cause}`), t('wait.again', { time: waitText(until - now) }), until), tone: 'warn' };
}

/** The status that belongs to a button. */
export function statusOf(at: Situation, button: Button): Status {
  const { attempt, sale } = at;
  const failed = button.kind === 'blocked' ? null : shownFailure(at, button);
  // Where nothing can be bought, the state of the sale comes first.
  const missed = button.kind === 'none' && failed?.step === 'refused' && failed.failure.code === 'PATH_INVALID' ? explain(failed.failure) : null;
  if (failed && missed === null) return failure(failed, button);
  switch (button.kind) {
    case 'sign-in':
      if (button.soldOut) return plain(soldOut(sale), t('soldOut.lead'));
      if (phaseAt(sale, at.now) === 'UPCOMING') return beforeOpening(at, t(sale.mode === 'DRAW' ? 'draw.ready' : 'sheet.signIn'));
      return sale.mode === 'DRAW' ? entering(at) : buying(at);
    case 'wait':
      return beforeOpening(at, opensFor(sale) > Date.parse(sale.startsAt) ? t('access.later') : sale.mode === 'DRAW' ? t('draw.opens') : at.verified ? t('wait.ready') : sale.drawOpensAt ? t('wait.soon', { time: moment(sale.drawOpensAt) }) : t('wait.later'));
    case 'join':
      return beforeOpening(at, t('wait.joinWhy'));
    case 'joined':
      return { ...plain(t('room.draw'), t('room.drawLead'), Date.parse(sale.startsAt)), tone: 'good' };
    case 'buy':
      return buying(at);
    case 'blocked':
      return blocked(at, button.until);
    case 'checking':
      return phaseAt(sale, at.now) === 'UPCOMING' ? beforeOpening(at, t('wait.joinWhy')) : plain(t('check.title'));
    case 'sending':
      return plain(t('sheet.sending'), button.slow ? t('sheet.slow') : null);
    case 'queue':
      return { ...plain(t('queue.title'), button.delayed ? t('queue.delayed') : queueText(at)), tone: 'good' };
    case 'room':
      return attempt.step === 'room' ? waitingRoomStatus(attempt.waiting.ticket.value, attempt.waiting.least.value) : plain(t('room.title'));
    case 'pay': {
      const until = button.order.paymentDeadline ? Date.parse(button.order.paymentDeadline) : null;
      const tone = until !== null && until - at.now < WARN_MS ? 'warn' : 'good';
      return { ...plain(t('done.title'), button.order.paymentDeadline && t('sheet.payLead', { time: timeOfDay(button.order.paymentDeadline) }), until), strict: true, tone };
    }
    case 'order':
      return button.order.status === 'PAID'
        ? { ...plain(t('sheet.paid'), t('sheet.paidLead')), tone: 'good' }
        : plain(t(`status.${button.order.status}`));
    case 'waitlist':
      return plain(soldOut(sale), t('soldOut.lead'));
    case 'waiting': {
      const { ahead = null, rank = null } = entryOf(sale, at.itemId) ?? {};
      if (rank !== null) return plain(t('draw.rank', { n: count(rank) }), ahead ? t('draw.rankLead', { n: count(ahead) }) : t('waitlist.next'));
      return ahead ? placed('waitlist.ahead', ahead, t('waitlist.lead')) : plain(t('waitlist.next'), t('waitlist.lead'));
    }
    case 'enter': {
      const former = sale.viewer?.waitlistEntry;
      if (former?.item.id === at.itemId && former.card === 'LIMIT_REACHED') return { ...plain(t('draw.enter'), t('draw.cardUsed'), Date.parse(sale.entriesCloseAt!)), tone: 'warn' };
      const lead = sale.authorizesEntries ? t('draw.cardLead', { amount: amountOf(at) }) : undefined;
      return entering(at, lead);
    }
    case 'authorize':
      return { ...plain(t('draw.cardDue'), t('draw.cardLead', { amount: amountOf(at) }), Date.parse(sale.entriesCloseAt!)), tone: 'warn' };
    case 'entered':
      return drawing(at);
    case 'none':
      return closed(at, button.reason, missed);
  }
}
