/** The steps of a sale by its status, for the buttons. The server checks them again. */
import type { User } from '../api/session';
import { request } from '../api/client';
import type { Failure } from '@seckill/client/types';
import type { ResultOf } from '@seckill/client/operation';
import { DescribeSale, DiscardSale, DuplicateSale, ExtendSale, WithdrawSale } from '../documents/drafts';
import { ApproveSale, EndSale, PauseSale, PreheatSale, RejectSale, ResumeSale, ScheduleSale, SubmitSale, type AdminSaleParts } from '../documents/operator';
import { SaveTemplate } from '../documents/templates';
import type { Asked } from './asked';

/** A sale as operators see it. */
export type AdminSale = ResultOf<typeof AdminSaleParts>;
/** The status of a sale. */
export type SaleStatus = AdminSale['status'];

/** A step. */
export type SaleAction = 'submit' | 'withdraw' | 'discard' | 'duplicate' | 'template' | 'approve' | 'reject' | 'schedule' | 'reschedule' | 'extend' | 'describe' | 'preheat' | 'pause' | 'resume' | 'end' | 'cancel';

/** What a step needs: a note, and an administrator. */
export const needs: Record<SaleAction, { note: 'none' | 'optional' | 'required'; admin: boolean }> = {
  submit: { note: 'none', admin: false },
  withdraw: { note: 'optional', admin: false },
  discard: { note: 'optional', admin: false },
  duplicate: { note: 'none', admin: false },
  template: { note: 'none', admin: false },
  approve: { note: 'optional', admin: true },
  reject: { note: 'required', admin: true },
  schedule: { note: 'none', admin: false },
  reschedule: { note: 'optional', admin: false },
  extend: { note: 'required', admin: false },
  describe: { note: 'optional', admin: false },
  preheat: { note: 'none', admin: false },
  pause: { note: 'required', admin: false },
  resume: { note: 'none', admin: false },
  end: { note: 'required', admin: true },
  cancel: { note: 'required', admin: true },
};

const byStatus: Record<SaleStatus, SaleAction[]> = {
  DRAFT: ['submit', 'discard', 'cancel'],
  PENDING_APPROVAL: ['approve', 'reject', 'withdraw', 'cancel'],
  REJECTED: ['discard', 'cancel'],
  APPROVED: ['schedule', 'describe', 'cancel'],
  SCHEDULED: ['preheat', 'reschedule', 'describe', 'cancel'],
  PREHEATED: ['pause', 'reschedule', 'describe', 'cancel'],
  LIVE: ['pause', 'extend', 'describe', 'end'],
  PAUSED: ['resume', 'extend', 'describe', 'end'],
  ENDED: ['describe'],
  CANCELLED: [],
};

/** The steps of a sale that was paused before its opening. */
const beforeOpening: SaleAction[] = ['resume', 'reschedule', 'describe', 'cancel'];

/** The steps that a user may take at a time, in ms. */
export function actionsOf({ status, startsAt }: Pick<AdminSale, 'status' | 'startsAt'>, who: User, at: number): SaleAction[] {
  const admin = who.role === 'ADMIN';
  const steps = status === 'PAUSED' && at < Date.parse(startsAt) ? beforeOpening : byStatus[status];
  const acts = steps?.filter((act) => (act === 'discard' ? !admin : admin || !needs[act].admin)); // administrators cancel
  return acts ? [...acts, 'duplicate', 'template'] : [];
}

/** Payload of a mutation on a sale. */
export interface SalePayload {
  sale: AdminSale | null;
  userErrors: Failure[];
  /** The request, where a second person is needed. */
  intervention?: Asked | null;
}

/** An instant as a datetime-local field shows it, in the browser's time zone. */
export function localInput(ms: number): string {
  const at = new Date(ms - new Date(ms).getTimezoneOffset() * 60_000);
  return at.toISOString().slice(0, 19).replace('T', ' ');
}

/** The instant of a field for a time in ms; NaN if it is none. */
export const readLocal = (field: string): number => Date.parse(field.replace(' ', 'T'));

/** An instant from a datetime-local field. An unchanged field keeps its instant: local times are ambiguous when clocks go back. */
export function instant(field = '', before?: string): string {
  return before && localInput(Date.parse(before)) === field ? before : new Date(readLocal(field)).toISOString();
}

/** Takes a step with the values of its form. */
export async function runAction(act: SaleAction, { id: saleId, startsAt, endsAt }: Pick<AdminSale, 'id' | 'startsAt' | 'endsAt'>, { note = '', starts, ends, title = '', rules = '', accent = '', name = '' }: Record<string, string>): Promise<Pick<SalePayload, 'userErrors'> & Partial<SalePayload> | null> {
  const input = { saleId };
  switch (act) {
    case 'submit':
      return (await request(SubmitSale, { input })).act;
    case 'withdraw':
      return (await request(WithdrawSale, { input: { saleId, note: note || null } })).act;
    case 'discard':
      return (await request(DiscardSale, { input: { saleId, note: note || null } })).act;
    case 'duplicate':
      return (await request(DuplicateSale, { input: { saleId, startsAt: instant(starts, startsAt), endsAt: instant(ends, endsAt) } })).act;
    case 'template':
      return (await request(SaveTemplate, { input: { saleId, name } })).act;
    case 'approve':
      return (await request(ApproveSale, { input: { saleId, note: note || null } })).act;
    case 'reject':
      return (await request(RejectSale, { input: { saleId, note } })).act;
    case 'schedule':
      return (await request(ScheduleSale, { input: { saleId, startsAt: instant(starts, startsAt), endsAt: instant(ends, endsAt) } })).act;
    case 'reschedule':
      return (await request(ScheduleSale, { input: { saleId, startsAt: instant(starts, startsAt), endsAt: instant(ends, endsAt), note: note || null } })).act;
    case 'extend':
      return (await request(ExtendSale, { input: { saleId, endsAt: instant(ends, endsAt), note } })).act;
    case 'describe':
      return (await request(DescribeSale, { input: { saleId, title, rules, accent: accent || null, note: note || null } })).act;
    case 'preheat':
      return (await request(PreheatSale, { input })).act;
    case 'pause':
      return (await request(PauseSale, { input: { saleId, note } })).act;
    case 'resume':
      return (await request(ResumeSale, { input })).act;
    case 'end':
    case 'cancel':
      return (await request(EndSale, { input: { saleId, note } })).act;
  }
}
