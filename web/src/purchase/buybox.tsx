/** The big button with all that belongs to it. */
import { useSignal } from '@preact/signals';
import { useEffect, useMemo } from 'preact/hooks';
import { Link, useLocation } from 'wouter-preact';
import { now, second } from '../api/clock';
import type { Failure, Item, Sale, Stock } from '../api/types';
import { apologise, digits, explain, t } from '../i18n/text';
import { Good } from '../ui/bits';
import { OPENING, useLeft, useThresholds } from '../ui/countdown';
import { Dialog } from '../ui/dialog';
import { lazy } from '../ui/lazy';
import { purchaseOf, type Purchase } from './attempt';
import { buttonOf, offerOf, usePhase, type Button } from './button';
import { usePurchase } from './follow';
import { Remind } from './remind';
import { Room, Turn } from './room';
import { join, Place } from './waitlist';

const Check = lazy(() => import('../captcha/check').then((module) => module.Check));

/** The captcha can be answered this long before the opening, in ms; it lapses after five minutes. */
const PREPARE_MS = 240_000;

interface Props {
  sale: Sale;
  item: Item;
  stock: Stock;
  signedIn: boolean;
  reload: () => void;
  choose: (itemId: string) => void;
}

/**
 * The button's words; those with a countdown tick. A browser that translates puts its own text in the place of ours and
 * knows of no change: so what ticks is not translated, and other words come as a new element.
 */
function Label({ button }: { button: Button }) {
  const ticks = button.kind === 'wait' || button.kind === 'pay';
  if (ticks) void second.value;
  const text = words(button);
  return (
    <span key={ticks ? button.kind : text} class={ticks ? 'notranslate' : ''}>
      {text}
    </span>
  );
}

function words(button: Button): string {
  switch (button.kind) {
    case 'sign-in':
      return t('button.signIn');
    case 'wait':
      return t('button.wait', { time: digits(button.until - now()) });
    case 'buy':
      return t('button.buy');
    case 'sending':
      return t(button.slow ? 'button.slow' : 'button.sending');
    case 'queue':
    case 'room':
      return t('button.queue');
    case 'pay': {
      const by = button.order.paymentDeadline;
      return t('button.pay', { time: by ? digits(Date.parse(by) - now()) : '' });
    }
    case 'order':
      return t('button.order');
    case 'waitlist':
      return t('button.waitlist');
    case 'waiting':
      return t('button.waiting');
    case 'none': {
      if (button.reason) return button.reason;
      const { phase } = button;
      if (phase === 'LIVE') return t('button.SOLD_OUT');
      return phase === 'UPCOMING' ? t('button.NONE') : t(`button.${phase}`);
    }
  }
}

/** The button, its quantity, and what happens after the press. */
export function BuyBox({ sale, item, stock, signedIn, reload, choose }: Props) {
  const [here, go] = useLocation();
  const purchase = useMemo(() => purchaseOf(sale.id, reload), [sale.id, signedIn]);
  usePurchase(purchase, sale, signedIn, reload);
  const quantity = useSignal(1);
  const joining = useSignal(false);
  const unjoined = useSignal<string | null>(null);
  usePhase(sale);
  const attempt = purchase.attempt.value;
  const turn = attempt.step === 'turn' ? attempt.itemId : null;
  useEffect(() => {
    if (turn) choose(turn);
  }, [turn]);
  const button = buttonOf({ sale, itemId: item.id, stock, signedIn, attempt, now: now() });
  const offer = offerOf(sale, item.id);
  const most = Math.min(sale.viewer?.remainingLimit ?? sale.purchaseLimit, 10);

  const act = (): void => {
    switch (button.kind) {
      case 'sign-in':
        return go(`/sign-in?next=${encodeURIComponent(here)}`);
      case 'buy':
        return purchase.press(item.id, offer ? 1 : Math.min(quantity.value, Math.max(most, 1)), offer);
      case 'pay':
      case 'order':
        return go(`/orders/${button.order.id}`);
      case 'waitlist':
        if (joining.value) return;
        joining.value = true;
        return void join(sale, item).then((why) => {
          unjoined.value = why;
          joining.value = false;
          reload();
        });
      default:
        return;
    }
  };
  const enabled = ['sign-in', 'buy', 'pay', 'order', 'waitlist'].includes(button.kind);
  const busy = button.kind === 'sending' || button.kind === 'queue' || button.kind === 'room' || joining.value;

  return (
    <>
      {button.kind === 'buy' && !offer && most > 1 && (
        <label class="flex items-center justify-between gap-3">
          {t('sale.quantity')}
          <select class="field w-24" value={quantity.value} onChange={(event) => (quantity.value = Number(event.currentTarget.value))}>
            {Array.from({ length: most }, (_, i) => (
              <option key={i}>{i + 1}</option>
            ))}
          </select>
        </label>
      )}
      <div class="z-20 max-lg:fixed max-lg:inset-x-0 max-lg:bottom-0 max-lg:border-t max-lg:border-line max-lg:bg-card max-lg:p-3 lg:sticky lg:bottom-0 lg:-my-2 lg:bg-card lg:py-2 print:static!">
        <button
          type="button"
          class={`btn btn-big ${enabled ? 'btn-main' : ''}`}
          data-button={button.kind}
          aria-disabled={!enabled}
          aria-busy={busy}
          onClick={act}
          onPointerEnter={() => void Check.preload()}
        >
          {busy && <span class="spin" />}
          <Label button={button} />
        </button>
      </div>
      <div aria-live="polite" class="grid gap-3 empty:hidden">
        {button.kind === 'none' && sale.notice && <p class="note">{sale.notice}</p>}
        <Outcome purchase={purchase} kind={button.kind} again={act} />
        <Place sale={sale} reload={reload} />
        {unjoined.value && (
          <p class="note" role="alert">
            {unjoined.value}
          </p>
        )}
      </div>
      {attempt.step === 'room' && <Room purchase={purchase} waiting={attempt.waiting} sale={sale} />}
      {attempt.step === 'turn' && <Turn purchase={purchase} until={Date.parse(attempt.path.expiresAt)} />}
      {button.kind === 'wait' && <Ahead purchase={purchase} sale={sale} item={item} until={button.until} />}
      {attempt.step === 'check' && (
        <Dialog title={t('check.title')} close={() => purchase.dismiss()}>
          <Check
            purpose="SECKILL"
            saleId={sale.id}
            challenge={attempt.challenge}
            failure={attempt.failure}
            onAnswer={(answer) => purchase.answer(answer)}
          />
        </Dialog>
      )}
    </>
  );
}

/** What came of the press. */
function Outcome({ purchase, kind, again }: { purchase: Purchase; kind: Button['kind']; again: () => void }) {
  const attempt = purchase.attempt.value;
  switch (attempt.step) {
    case 'queued':
      return <Queue />;
    case 'bought':
      return kind === 'pay' || kind === 'order' ? <Good>{t('done.title')}</Good> : null;
    case 'refused':
      if (kind === 'buy' && attempt.failure.__typename === 'SaleNotOpenError') return null; // it is open again
      return (
        <div class="note" role="alert">
          <p class="font-medium">{explain(attempt.failure)}</p>
          <More failure={attempt.failure} />
        </div>
      );
    case 'broken':
      return (
        <div class="note grid gap-2" role="alert">
          <p class="font-medium">{apologise(attempt.fault)}</p>
          <p>{t('fault.unsure')}</p>
          <button class="btn" onClick={again}>
            {t('fault.again')}
          </button>
        </div>
      );
    case 'idle':
      return purchase.ready.value ? <Good>{t('wait.ready')}</Good> : null;
    case 'check':
    case 'sending':
    case 'room':
    case 'turn':
      return null;
  }
}

/** What helps after a refusal. */
function More({ failure }: { failure: Failure }) {
  if (failure.__typename === 'PurchaseLimitError' && failure.existingOrder) {
    return (
      <Link class="link" href={`/orders/${failure.existingOrder.id}`}>
        {t('button.order')}
      </Link>
    );
  }
  if (failure.code === 'SOLD_OUT') return <p class="text-soft">{t('soldOut.lead')}</p>;
  return null;
}

/** The order task while its order is being created. */
function Queue() {
  return (
    <div class="note">
      <p class="font-medium">{t('queue.title')}</p>
      <p class="text-sm text-soft">{t('queue.lead')}</p>
    </div>
  );
}

/** What can be done before the opening. */
function Ahead({ purchase, sale, item, until }: { purchase: Purchase; sale: Sale; item: Item; until: number }) {
  const left = useLeft(until);
  useThresholds(left, OPENING);
  const soon = left < PREPARE_MS;
  const ready = purchase.ready.value;
  return (
    <div class="grid gap-3">
      {soon && !ready && purchase.attempt.value.step !== 'room' && (
        <div>
          <button class="btn w-full" aria-describedby="prepare-why" onClick={() => purchase.prepare(item.id)}>
            {t('wait.join')}
          </button>
          <p id="prepare-why" class="mt-1 text-center text-sm text-soft">
            {t('wait.joinWhy')}
          </p>
        </div>
      )}
      <Remind sale={sale} />
    </div>
  );
}
