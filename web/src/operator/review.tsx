/** Everything that an approval approves, with warnings about prices. */
import { useSignal } from '@preact/signals';
import { count, hoursOrDays, money, percentOff, span, times, total } from '../i18n/text';
import { Picture, DateTime } from '../ui/bits';
import { Markdown } from '../pages/markdown';
import { UploadMembers } from './access';
import type { AdminSale } from './acts';
import { fieldName, valueWords } from './log';
import { priceWarning } from './price';
import { ot } from './texts';

type Item = AdminSale['items'][number];

function Row({ item }: { item: Item }) {
  const percent = percentOff(item.price, item.goods.listPrice);
  const warning = priceWarning(item.price, item.goods.listPrice);
  return (
    <li class="flex flex-wrap items-center gap-x-4 gap-y-1 border-t border-line py-3 first:border-0">
      <Picture goods={item.goods} class="size-12 shrink-0 rounded-lg" />
      <span class="grid grow basis-32">
        <span class="font-medium"><bdi>{item.goods.name}</bdi></span>
        {item.goods.imageUrl && (
          <span class="text-sm text-soft wrap-anywhere">
            {item.goods.imageAlt ? ot('op.altFact', { text: item.goods.imageAlt }) : ot('op.altNone')}
          </span>
        )}
      </span>
      <span class="tabular-nums">
        <strong>{money(item.price)}</strong>{' '}
        <span class="text-sm text-soft">
          {ot('op.usual')} {money(item.goods.listPrice)}
        </span>{' '}
        {percent > 0 && <span class="text-sm text-good">{ot('op.off', { percent })}</span>}
      </span>
      <span class="text-sm text-soft tabular-nums">
        {ot('op.limitOf', { n: item.purchaseLimit })} · {ot('op.stock')} {item.stock.total === null ? '–' : count(item.stock.total)}
      </span>
      {warning && <strong class="w-full text-sm text-warn">{warning}</strong>}
    </li>
  );
}

/** A name and a value. */
type Fact = [string, preact.ComponentChildren];

/** Who may buy from when, by the first rule that fits. */
function AccessRules({ rules }: { rules: AdminSale['access'] }) {
  const filling = useSignal<string | null>(null);
  return (
    <>
      {rules.map(({ kind, name, source, from, keepUnits, keptUntil }) => (
        <span key={`${kind} ${source}`} class="block">
          {ot(`op.access.${kind}`)} {name && <bdi>{name}</bdi>} {source && <bdi class="text-soft">{source}</bdi>} <DateTime at={from} zone />
          {keptUntil && keepUnits && (
            <span class="block text-sm text-soft">
              {ot('op.access.kept', { units: count(keepUnits) })} <DateTime at={keptUntil} zone />
            </span>
          )}
          {kind === 'LIST' && source && (
            <button class="link block text-sm" onClick={() => (filling.value = source)}>
              {ot('op.members.upload')}
              <span class="sr-only"> <bdi>{source}</bdi></span>
            </button>
          )}
        </span>
      ))}
      {filling.value && <UploadMembers list={filling.value} close={() => (filling.value = null)} />}
    </>
  );
}

function factsOf(sale: AdminSale): Fact[] {
  const value = sale.items.some(({ stock }) => stock.total === null) ? null : total(sale.items.map(({ price, stock }) => times(price, stock.total!)));
  const needed = (is: boolean): string => ot(is ? 'op.required' : 'op.notRequired');
  return [
    [ot('op.starts'), <DateTime at={sale.startsAt} zone />],
    [ot('op.ends'), <DateTime at={sale.endsAt} zone />],
    [ot('op.saleLimitFact'), sale.purchaseLimit === null ? ot('op.noLimit') : count(sale.purchaseLimit)],
    [ot('op.limitBy'), sale.limitBy.map((kind) => ot(`op.limitBy.${kind}`)).join(ot('op.and'))],
    [ot('op.access'), sale.access.length ? <AccessRules rules={sale.access} /> : ot('op.accessAll')],
    [ot('op.seenBy'), ot(sale.private ? 'op.seenBy.access' : 'op.seenBy.all')],
    [ot('op.mode'), ot(`op.mode.${sale.mode}`)],
    ...(sale.entriesCloseAt && sale.offerSeconds
      ? ([[ot('op.entriesClose'), <DateTime at={sale.entriesCloseAt} zone />], [ot('op.offerFact'), span(sale.offerSeconds)], [ot('op.authorize'), needed(sale.authorizesEntries)]] satisfies Fact[])
      : []),
    [ot('op.detail.window'), span(sale.paymentWindowSeconds)],
    [ot('op.contactFact'), needed(sale.requireVerifiedContact)],
    [ot('op.ageFact'), sale.minimumAccountAge ? hoursOrDays(sale.minimumAccountAge) : ot('op.notRequired')],
    [ot('op.addressFact'), needed(sale.requiresAddress)],
    [ot('op.stockFact'), ot(sale.hideExactStock ? 'op.hidden' : 'op.shown')],
    [ot('op.accentFact'), sale.accent?.color ?? ot('op.accentShop')],
    [ot('op.total'), value ? money(value) : '–'],
    [ot('op.detail.slug'), sale.slug],
  ];
}

/** The access controls; a zero means no limit, or what the installation has. */
function controlsOf(switches: NonNullable<AdminSale['switches']>): Fact[] {
  const words = (name: keyof typeof switches, zero: 'op.noLimit' | 'op.default' | 'op.never' | null = null): Fact => {
    const value = switches[name];
    return [fieldName(name), value === 0 && zero ? ot(zero) : valueWords(name, value, {})];
  };
  return [
    words('captchaRequired'),
    words('captchaKinds'),
    words('proofOfWorkMax', 'op.default'),
    words('permitRatio', 'op.noLimit'),
    words('inflowPerSecond', 'op.noLimit'),
    words('reviewAccounts', 'op.never'),
    words('limitBurst', 'op.default'),
    ...(switches.limitBurst ? [words('limitPerSecond')] : []), // without a burst, the installation has both
  ];
}

function Facts({ facts }: { facts: Fact[] }) {
  return (
    <dl class="grid grid-cols-2 gap-x-4 gap-y-2 tabular-nums sm:grid-cols-[auto_1fr_auto_1fr] sm:gap-x-6">
      {facts.map(([name, fact]) => (
        <>
          <dt class="text-soft">{name}</dt>
          <dd class="min-w-0 wrap-anywhere">{fact}</dd>
        </>
      ))}
    </dl>
  );
}

/** The sale as it is approved. */
export function Review({ sale }: { sale: AdminSale }) {
  return (
    <section class="card grid gap-4 p-5" aria-labelledby="review">
      <h2 id="review" class="head">
        {ot('op.review')}
      </h2>
      <Facts facts={factsOf(sale)} />
      <ul>
        {sale.items.map((item) => (
          <Row key={item.id} item={item} />
        ))}
      </ul>
      {sale.switches && (
        <div>
          <h3 class="mb-2 font-semibold">{ot('op.switches')}</h3>
          <Facts facts={controlsOf(sale.switches)} />
        </div>
      )}
      {sale.rules && (
        <div>
          <h3 class="mb-2 font-semibold">{ot('op.rules')}</h3>
          <Markdown text={sale.rules} />
        </div>
      )}
    </section>
  );
}
