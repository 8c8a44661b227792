/**
 * The page on which a card is authorized for an entry of a draw, with Stripe's Payment Element. It is entered and left by a
 * full page load, as that of the payment of an order.
 */
import { useEffect } from 'preact/hooks';
import { randomKey } from '@seckill/client/pending';
import { AuthorizeEntry } from '../documents/entry-card';
import type { Failure } from '@seckill/client/types';
import { request } from '../api/client';
import { useLoad } from '../api/load';
import { currentUser } from '../api/session';
import { money, t } from '../i18n/text';
import { Unready } from '../ui/bits';
import { Card, Unpayable, type Payable } from './pay';

/** Begins the authorization, or returns the one that was begun. */
async function begin(slug: string, entry: string): Promise<Payable | Failure | null> {
  const { authorizeEntry } = await request(AuthorizeEntry, { input: { waitlistEntryId: entry, idempotencyKey: randomKey() } });
  const payment = authorizeEntry?.payment;
  if (payment?.status !== 'PENDING' || !payment.embedded) return authorizeEntry?.userErrors[0] ?? null;
  const amount = money(payment.amount);
  return {
    title: t('draw.cardPage'),
    lead: t('draw.cardLead', { amount }),
    act: t('draw.cardAct', { amount }),
    deadline: null,
    embedded: payment.embedded,
    back: `/s/${slug}`,
    backText: t('draw.cardBack'),
    done: '',
  };
}

export function EntryCardPage({ slug }: { slug: string }) {
  const entry = new URLSearchParams(location.search).get('entry');
  const { page, reload } = useLoad(`card ${entry}`, () => (currentUser.peek() && entry ? begin(slug, entry) : Promise.resolve(null)));
  const missing = page.value.state === 'missing';
  useEffect(() => {
    if (missing) location.replace(`/s/${slug}`);
  }, [missing]);
  if (page.value.state !== 'ready') return <Unready page={page.value} again={reload} inset />;
  const found = page.value.data;
  return 'embedded' in found ? <Card payable={found} /> : <Unpayable failure={found} back={`/s/${slug}`} text={t('draw.cardBack')} />;
}
