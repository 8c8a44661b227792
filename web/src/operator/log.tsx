/** The audit log of a sale or a product, newest first, with the changed fields. */
import { Link } from 'wouter-preact';
import type { graphql } from '@seckill/client/tada';
import { count, isolate, textOr, span } from '../i18n/text';
import { DateTime } from '../ui/bits';
import { ot, type OpKey } from './texts';

/** Type of a logged value; it determines how its text is parsed. */
type LogValueKind = ReturnType<typeof graphql.scalar<'LogValueKind'>>;

/** An entry of a log, as the API returns it. */
export interface Entry {
  at: string;
  action: string;
  note: string | null;
  changes: readonly { name: string; kind: LogValueKind; from: string | null; fromKnown: boolean; to: string }[];
  actor: { displayName: string } | null;
}

/** Names of products and items, by id. */
export type Names = Readonly<Record<string, string>>;

/** Labels of the fields in a log. */
const labels: Record<string, OpKey> = {
  title: 'op.saleTitle',
  slug: 'op.detail.slug',
  rules: 'op.rules',
  startsAt: 'op.starts',
  endsAt: 'op.ends',
  preheatAt: 'op.detail.preheatAt',
  paymentWindowSeconds: 'op.detail.window',
  price: 'op.price',
  stock: 'op.stock',
  permitRatio: 'op.detail.permits',
  purchaseLimit: 'op.saleLimit',
  hideExactStock: 'op.hide',
  private: 'op.private',
  requiresAddress: 'op.address',
  requireVerifiedContact: 'op.contact',
  minimumAccountAge: 'op.accountAge',
  limitBy: 'op.limitBy',
  access: 'op.access',
  draw: 'op.mode',
  drawValue: 'op.drawValue',
  drawValueSource: 'op.drawValueSource',
  accent: 'op.accentFact',
  items: 'op.items',
  captchaRequired: 'op.captchaRequired',
  captchaKinds: 'op.detail.captchaKinds',
  proofOfWorkMax: 'op.detail.proofOfWork',
  inflowPerSecond: 'op.detail.inflow',
  reviewAccounts: 'op.detail.reviewAccounts',
  limitBurst: 'op.detail.limitBurst',
  limitPerSecond: 'op.limitPerSecond',
  item: 'op.detail.item',
  units: 'op.units',
  orderUnits: 'op.units',
  order: 'op.detail.order',
  cluster: 'op.detail.cluster',
  orders: 'op.orders',
  requestedBy: 'op.detail.requestedBy',
  requestNote: 'op.detail.requestNote',
  confirmedBy: 'op.detail.confirmedBy',
  confirmNote: 'op.detail.confirmNote',
  name: 'op.name',
  description: 'op.description',
  listPrice: 'op.usual',
  imageUrl: 'op.detail.picture',
  imageAlt: 'op.alt',
  currency: 'op.currency',
  goods: 'op.detail.item',
  terms: 'op.detail.terms',
  batch: 'op.detail.batch',
  source: 'op.codes.source',
  codes: 'op.codes.count',
  uses: 'op.codes.uses',
  expiresAt: 'op.codes.expires',
  revokedBatch: 'op.detail.revokedBatch',
  revokedCode: 'op.detail.revokedCode',
};

/** The fields in the order in which they are shown. */
const order = Object.keys(labels);

/** The label of a field, or its name. */
export const fieldName = (name: string): string => (labels[name] ? ot(labels[name]) : name);

/** A changed field: its name, its value, and its former value where the log has it. */
export type Change = [name: string, value: unknown, before?: unknown];

/** The value of a text of the log; null when the field had none. */
export function readValue(kind: LogValueKind, text: string | null): unknown {
  if (text === null) return null;
  switch (kind) {
    case 'TEXT':
    case 'INSTANT':
      return text === 'null' ? null : text;
    case 'BOOLEAN':
    case 'NUMBER':
    case 'JSON':
      return JSON.parse(text);
  }
}

/** The changed fields in the order in which they are shown. `units` of an order get a name of their own, because they are not a stock change. */
export function fieldsOf(changes: Entry['changes']): Change[] {
  const none = (value: unknown): boolean => value === undefined || value === null || value === '';
  const ofOrder = changes.some(({ name }) => name === 'order');
  const all = changes.map(({ name: field, kind, from, fromKnown, to }): Change => {
    const name = ofOrder && field === 'units' ? 'orderUnits' : field;
    return fromKnown ? [name, readValue(kind, to), readValue(kind, from)] : [name, readValue(kind, to)];
  });
  const found = all.filter(([, value, before]) => !none(value) || !none(before)); // leaves out optional fields that were never set
  return found.sort(([a], [b]) => order.indexOf(a) - order.indexOf(b));
}

/** The text of a value; instants and orders have components of their own. */
export function valueWords(name: string, value: unknown, names: Names): string {
  if (typeof value === 'boolean') return ot(value ? 'op.yes' : 'op.no');
  if (typeof value === 'number') {
    if (name === 'paymentWindowSeconds') return span(value);
    return name === 'units' && value > 0 ? `+${count(value)}` : count(value);
  }
  if (Array.isArray(value)) {
    if (name === 'limitBy') return value.map((kind) => textOr(`op.limitBy.${kind}`, String(kind))).join(ot('op.and'));
    if (name === 'captchaKinds') return value.length ? value.map((kind) => textOr(`op.kind.${kind}`, String(kind))).join(ot('op.comma')) : ot('op.all');
    return value.map((each) => valueWords('', each, names)).join(ot('op.semicolon'));
  }
  if (value && typeof value === 'object') {
    const { goods, stock, price } = value as Record<string, unknown>;
    if (goods) return `${isolate(names[String(goods)] ?? String(goods))} × ${count(Number(stock))}, ${String(price)}`;
    return JSON.stringify(value);
  }
  return names[String(value)] ?? (value === null || value === '' ? '–' : String(value));
}

/** A value of a field. */
export function Value({ name, value, names }: { name: string; value: unknown; names: Names }) {
  if (typeof value === 'string' && name.endsWith('At')) return <DateTime at={value} zone />;
  if (name === 'order') {
    return (
      <Link class="link break-all" href={`/orders/${String(value)}`}>
        {String(value)}
      </Link>
    );
  }
  return <bdi>{valueWords(name, value, names)}</bdi>;
}

/** Most entries that the API returns of a log. */
const MOST_ENTRIES = 50;

/** The log. */
export function Log({ entries, names }: { entries: readonly Entry[]; names: Names }) {
  return (
    <>
    <ol class="grid gap-3 border-l-2 border-line pl-4">
      {entries.map((entry) => (
        <li key={`${entry.at}${entry.action}`} class="min-w-0">
          <LogEntry entry={entry} names={names} />
        </li>
      ))}
    </ol>
    <LogEnd entries={entries} />
    </>
  );
}

/** Says that a log may have more than what is shown. */
export function LogEnd({ entries }: { entries: readonly Entry[] }) {
  return entries.length >= MOST_ENTRIES ? <p class="mt-3 text-sm text-soft">{ot('op.listMore', { n: count(MOST_ENTRIES) })}</p> : null;
}

/** An entry of a log. */
export function LogEntry({ entry, names }: { entry: Entry; names: Names }) {
  return (
    <>
      <p class="font-medium">{textOr(`op.did.${entry.action}`, entry.action)}</p>
      <p class="text-sm text-soft">
        <DateTime at={entry.at} /> · <bdi>{entry.actor?.displayName ?? ot('op.byClock')}</bdi>
        {entry.note && ` · ${isolate(entry.note)}`}
      </p>
      <Changes fields={fieldsOf(entry.changes)} names={names} />
    </>
  );
}

/** Changed fields with their values. */
export function Changes({ fields, names }: { fields: Change[]; names: Names }) {
  if (!fields.length) return null;
  return (
    <dl class="mt-1 grid gap-x-3 text-sm sm:grid-cols-[auto_1fr]" aria-label={ot('op.changed')}>
      {fields.map(([name, value, before]) => (
        <>
          <dt class="text-soft">{fieldName(name)}</dt>
          <dd class="min-w-0 break-words whitespace-pre-line max-sm:mb-1">
            {before !== undefined && (
              <del class="mr-2 text-soft">
                <Value name={name} value={before} names={names} />
              </del>
            )}
            <Value name={name} value={value} names={names} />
          </dd>
        </>
      ))}
    </dl>
  );
}
