/** The page of a sale as buyers will see it, for those who prepare it. It sends nothing and cannot be used. */
import { now } from '../api/clock';
import type { Item, Phase, Sale, Stock } from '@seckill/client/types';
import { buttonOf, closesAt, type Situation } from '../purchase/button';
import { ChecklistPreview, type Required } from '../purchase/checklist';
import { ByTab } from '../purchase/remind';
import { Sheet } from '../purchase/sheet';
import { statusOf } from '../purchase/status';
import { quantityOf, SaleView } from './sale-view';

/** What the preview needs of a sale. */
export type Previewed = Omit<Sale, 'phase' | 'viewer' | 'serverTime' | 'drawOpensAt'> & Omit<Required, 'viewer'>;

/** The UPCOMING preview shows a time at least this long before the opening, in ms. */
const EARLY_MS = 3_600_000;

interface Props {
  sale: Previewed;
  /** The chosen item; the first one for an unknown id. */
  itemId: string;
  phase: Extract<Phase, 'UPCOMING' | 'LIVE' | 'ENDED'>;
  /** Whether the sale shows its stock in words only. */
  hidden: boolean;
}

const nothing = (): void => {};

/** The page for a signed-in buyer, in a phase. */
export function SalePreview({ sale: of, itemId, phase, hidden }: Props) {
  const sale: Sale = { ...of, phase, notice: null, viewer: null, serverTime: of.startsAt, drawOpensAt: null };
  const item = sale.items.find(({ id }) => id === itemId) ?? sale.items[0];
  if (!item) return null;
  // updatedAt is the end of the sale, so that the stock is not marked as old.
  const stockOf = ({ stock }: Pick<Item, 'stock'>): Stock => ({ ...stock, ...(hidden && { remaining: null, total: null }), updatedAt: sale.endsAt });
  const starts = Date.parse(sale.startsAt);
  const at = { UPCOMING: Math.min(now(), starts - EARLY_MS), LIVE: starts, ENDED: Date.parse(sale.endsAt) }[phase];
  const situation: Situation = { sale, itemId: item.id, stock: stockOf(item), quantity: quantityOf(sale, item, 1), signedIn: true, attempt: { step: 'idle' }, now: at, readAt: 0 };
  const button = buttonOf(situation);
  const sheet = (
    <Sheet
      status={statusOf(situation, button)}
      button={button}
      item={item}
      quantity={quantityOf(sale, item, 1)}
      closes={closesAt(sale)}
      failed={false}
      waiting={false}
      startsAt={starts}
      act={nothing}
    />
  );
  const required = { ...of, viewer: { needsVerifiedContact: of.requireVerifiedContact, accountTooNew: false } };
  return (
    // contain: layout keeps the sheet inside this frame; on a phone it is position: fixed.
    <div inert class="overflow-clip rounded-2xl border border-edge bg-page px-4 pt-6 pb-52 [contain:layout] sm:pt-8 lg:pb-8">
      <SaleView
        sale={sale}
        item={item}
        phase={phase}
        stockOf={stockOf}
        choose={nothing}
        wanted={1}
        want={nothing}
        sheet={sheet}
        checklist={<ChecklistPreview sale={sale} required={required} />}
        remind={<ByTab sale={sale} />}
      />
    </div>
  );
}
