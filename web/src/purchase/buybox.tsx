/** The status sheet of a sale with what its button does. */
import { useEffect, useMemo } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';
import { now } from '../api/clock';
import { viewerTime } from '../api/stores';
import type { Item, Sale, Stock } from '@seckill/client/types';
import { t } from '../i18n/text';
import { OPENING, useLeft, useThresholds } from '../ui/countdown';
import { useCaptchaAhead } from '../captcha/ahead';
import { lazy } from '../ui/lazy';
import { type Purchase } from '@seckill/client/purchase';
import { purchaseOf } from './attempt';
import { buttonOf, closesAt, entryOf, offerOf, opensFor, usePhase, type Button, type Situation } from './button';
import { shownFailure, type Failed } from './refusal';
import { currentSale } from './current';
import { usePurchase } from './follow';
import { share, type Shared } from './shared';
import { Sheet } from './sheet';
import { statusOf, type Status } from './status';
import { useWaitlist, type Waitlist } from './waitlist';

const Check = lazy(() => import('../captcha/check').then((module) => module.Captcha));

interface Props {
  sale: Sale;
  item: Item;
  stock: Stock;
  quantity: number;
  signedIn: boolean;
  reload: () => void;
  choose: (itemId: string) => void;
}

/** The status of a button as other pages and tabs show it. */
function sharedOf(button: Button, at: Situation, status: Status): Omit<Shared, 'saleId'> | null {
  const { sale } = at;
  const base = { title: sale.title, slug: sale.slug, orderId: null, until: status.until, amount: null };
  switch (button.kind) {
    case 'joined':
    case 'room':
    case 'queue':
      return { ...base, kind: button.kind };
    case 'pay':
      return { ...base, kind: 'pay', orderId: button.order.id, amount: button.order.total };
    case 'buy':
      if (at.attempt.step === 'admitted') return { ...base, kind: 'turn' };
      return offerOf(sale, at.itemId) ? { ...base, kind: 'offer' } : null;
    default:
      return null;
  }
}

/** Shares the status with the other pages and tabs while the sale is shown. */
function useShared(sale: Sale, shared: Omit<Shared, 'saleId'> | null): void {
  const text = JSON.stringify(shared);
  useEffect(() => share(sale.id, shared), [sale.id, text]);
}

/** Ends a turn that was not used. */
function useTurn(purchase: Purchase, choose: (itemId: string) => void): void {
  const attempt = purchase.attempt.value;
  const turn = attempt.step === 'admitted' ? attempt : null;
  const left = useLeft(turn ? Date.parse(turn.path.expiresAt) : Infinity);
  useEffect(() => {
    if (turn) choose(turn.itemId);
  }, [turn?.itemId]);
  useEffect(() => {
    if (left <= 0 && turn) purchase.expired(turn.itemId);
  }, [left <= 0]);
}

/** The status sheet, and the captcha over it. */
export function BuyBox({ sale: read, item, stock, quantity, signedIn, reload, choose }: Props) {
  const [, go] = useLocation();
  const purchase = useMemo(() => purchaseOf(read.id, reload), [read.id, signedIn]);
  const readAt = viewerTime(read.id);
  const sale = signedIn ? currentSale(read, purchase.attempt.value, readAt) : read;
  usePurchase(purchase, sale, signedIn, reload);
  const phase = usePhase(sale);
  useTurn(purchase, choose);
  useThresholds(useLeft(opensFor(sale)), OPENING);
  const waitlist = useWaitlist(sale, item, reload);
  const attempt = purchase.attempt.value;
  const situation: Situation = { sale, itemId: item.id, stock, quantity, signedIn, attempt, verified: purchase.ready.value !== null, now: now(), readAt };
  const button = buttonOf(situation);
  const status = statusOf(situation, button);
  useShared(sale, signedIn ? sharedOf(button, situation, status) : null);
  const offer = offerOf(sale, item.id);
  const units = offer ? (entryOf(sale, item.id)?.quantity ?? 1) : quantity;
  const prepares = signedIn && button.kind === 'buy' && attempt.step === 'idle' && !offer;
  const ahead = useCaptchaAhead(purchase, prepares, attempt.step === 'check' && !attempt.challenge && !attempt.failure);
  useEffect(() => {
    if (prepares) void Check.preload();
  }, [prepares]);
  useEffect(
    () => () => {
      const { step } = purchase.attempt.peek();
      if (step === 'refused' || step === 'broken') purchase.dismiss(); // what was refused may be in order when the page is opened again
    },
    [purchase],
  );
  const gone = attempt.step === 'check' && phase !== 'UPCOMING' && (phase !== 'LIVE' || stock.level === 'SOLD_OUT');
  useEffect(() => {
    if (gone) purchase.dismiss(); // no captcha without a chance to buy
  }, [gone]);

  const act = (): void => {
    switch (button.kind) {
      case 'sign-in':
        return go(`/sign-in?next=${encodeURIComponent(location.pathname + location.search)}`);
      case 'join':
        return purchase.prepare(item.id);
      case 'buy':
        return purchase.buy(item.id, units, offer);
      case 'pay':
        return go(`/orders/${button.order.id}?pay`);
      case 'order':
        return go(`/orders/${button.order.id}`);
      case 'waitlist':
      case 'enter':
        return waitlist.join(item, quantity);
      case 'authorize':
        return waitlist.authorize();
      default:
        return;
    }
  };
  return (
    <>
      <Sheet
        status={status}
        button={button}
        item={item}
        quantity={units}
        closes={closesAt(sale)}
        failed={shownFailure(situation, button)?.step === 'broken'}
        waiting={waitlist.busy.value || waitlist.check !== null}
        startsAt={opensFor(sale)}
        act={act}
      >
        <Beside purchase={purchase} button={button} waitlist={waitlist} failed={shownFailure(situation, button)} />
      </Sheet>
      {attempt.step === 'check' && !ahead.asking && (
        <Check
          purpose="SECKILL"
          saleId={sale.id}
          challenge={attempt.challenge ?? (attempt.failure ? null : ahead.challenge)}
          failure={attempt.failure}
          onAnswer={(answer) => {
            ahead.forget(); // it can be used once
            purchase.answer(answer);
          }}
          close={() => {
            ahead.forget();
            purchase.dismiss();
          }}
        />
      )}
      {waitlist.check && (
        <Check
          purpose="WAITLIST"
          saleId={sale.id}
          challenge={waitlist.check.challenge}
          failure={waitlist.check.failure}
          onAnswer={(answer) => waitlist.answer(answer)}
          close={() => waitlist.dismiss()}
        />
      )}
    </>
  );
}

/** What else the sheet shows: progress, and the way out of a queue. */
function Beside({ purchase, button, waitlist, failed }: { purchase: Purchase; button: Button; waitlist: Waitlist; failed: Failed | null }) {
  const attempt = purchase.attempt.value;
  if (failed?.step === 'refused' && failed.failure.__typename === 'AlreadyOrderedError' && failed.failure.order) {
    return (
      <Link class="link text-sm" href={`/orders/${failed.failure.order.id}`}>
        {t('button.order')}
      </Link>
    );
  }
  if (attempt.step === 'room') {
    const { waiting } = attempt;
    const leave = (): void => {
      waiting.leave();
      purchase.left();
    };
    return (
      <>
        {waiting.least.value !== null && (
          <progress class="bar" value={1 - waiting.least.value / waiting.first.value!} max={1} aria-label={t('sheet.progress')} />
        )}
        <Leave text={t(button.kind === 'joined' ? 'room.leaveDraw' : 'room.leave')} act={leave} />
      </>
    );
  }
  if (waitlist.why) {
    return (
      <p class="text-sm text-danger" role="alert">
        {waitlist.why}
      </p>
    );
  }
  return waitlist.entry ? <Leave text={t(waitlist.entry.status === 'OFFERED' ? 'waitlist.decline' : waitlist.entry.status === 'ENTERED' ? 'draw.leave' : 'waitlist.leave')} act={() => waitlist.leave()} /> : null;
}

function Leave({ text, act }: { text: string; act: () => void }) {
  return (
    <button class="link min-h-8 justify-self-start text-sm" onClick={act}>
      {text}
    </button>
  );
}
