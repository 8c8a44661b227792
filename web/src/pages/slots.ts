import type { Card } from '@seckill/client/types';
import { moment, t } from '../i18n/text';
import { isOver, phaseAt } from '../purchase/button';

/** A group of sales under one heading. */
export interface Slot {
  id: string;
  title: string;
  /** The opening, where it names the group. */
  at: string | null;
  sales: Card[];
}

/** The upcoming sale that opens first. */
export function nextOf(sales: Card[], at: number): Card | undefined {
  const upcoming = sales.filter((sale) => phaseAt(sale, at) === 'UPCOMING');
  return upcoming.sort((a, b) => Date.parse(a.startsAt) - Date.parse(b.startsAt))[0];
}

/** Groups sales: on now, by opening time, ended. */
export function slotsOf(sales: Card[], at: number): Slot[] {
  const slots = new Map<string, Slot>();
  const put = (id: string, title: string, sale: Card, at: string | null = null): void => {
    const slot = slots.get(id) ?? { id, title, at, sales: [] };
    slot.sales.push(sale);
    slots.set(id, slot);
  };
  const byPhase = { on: [] as Card[], soon: [] as Card[], over: [] as Card[] };
  for (const sale of sales) {
    const phase = phaseAt(sale, at);
    byPhase[phase === 'UPCOMING' ? 'soon' : isOver(phase) ? 'over' : 'on'].push(sale);
  }
  byPhase.on.sort((a, b) => Number(a.phase === 'SOLD_OUT') - Number(b.phase === 'SOLD_OUT'));
  for (const sale of byPhase.on) put('now', t('sales.now'), sale);
  byPhase.soon.sort((a, b) => Date.parse(a.startsAt) - Date.parse(b.startsAt));
  for (const sale of byPhase.soon) put(`at-${Date.parse(sale.startsAt)}`, moment(sale.startsAt), sale, sale.startsAt);
  for (const sale of byPhase.over) put('over', t('sales.ended'), sale);
  return [...slots.values()];
}
