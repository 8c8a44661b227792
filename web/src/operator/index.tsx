/** The operators' part, fetched when an operator opens it. */
import type { ComponentChildren } from 'preact';
import { Link, Route, Switch, useLocation } from 'wouter-preact';
import { person } from '../api/session';
import { loadTexts, t } from '../i18n/text';
import { Missing, Title } from '../ui/bits';
import { useTitle } from '../ui/title';
import { DeadLetters } from './deadletters';
import { Desk } from './desk';
import { SaleEditor } from './editor';
import { Goods } from './goods';
import { Orders } from './orders';
import { Sales } from './sales';
import { ot, texts } from './texts';

/** Adds the texts of this part. */
export const prepare = (): Promise<void> => loadTexts((of) => Promise.resolve(texts[of]));

/** The pages under /operate. */
export function Operator() {
  useTitle(ot('op.title'));
  const [where] = useLocation();
  if (!person.value || person.value.role === 'CUSTOMER') {
    return (
      <div class="page">
        <Title>{ot('op.denied')}</Title>
        {!person.value && (
          <Link class="link mt-4 inline-block" href={`/sign-in?next=${encodeURIComponent(where)}`}>
            {t('nav.signIn')}
          </Link>
        )}
      </div>
    );
  }
  return (
    <div class="page max-w-6xl">
      <Tabs />
      <Switch>
        <Route path="/operate">{() => <Sales />}</Route>
        <Route path="/operate/new">{() => <SaleEditor />}</Route>
        <Route path="/operate/sales/:id/edit">{({ id }) => <SaleEditor key={id} id={id} />}</Route>
        <Route path="/operate/sales/:id">{({ id }) => <Desk key={id} id={id} />}</Route>
        <Route path="/operate/goods">{() => <Goods />}</Route>
        <Route path="/operate/orders">{() => <Orders />}</Route>
        <Route path="/operate/aside">{() => <DeadLetters />}</Route>
        <Route component={Missing} />
      </Switch>
    </div>
  );
}

function Tabs() {
  const [where] = useLocation();
  const tab = (href: string, here: boolean, text: ComponentChildren) => (
    <Link
      href={href}
      aria-current={here ? 'page' : undefined}
      class="inline-flex min-h-11 items-center border-b-2 border-transparent px-2 font-medium sm:px-3 whitespace-nowrap hover:border-edge aria-[current]:border-brand aria-[current]:text-brand"
    >
      {text}
    </Link>
  );
  const other = ['/operate/goods', '/operate/orders', '/operate/aside'].some((path) => where.startsWith(path));
  return (
    <nav aria-label={ot('op.tabs')} class="mb-6 flex gap-1 overflow-x-auto border-b border-line">
      {tab('/operate', !other, ot('op.sales'))}
      {tab('/operate/goods', where.startsWith('/operate/goods'), ot('op.goods'))}
      {tab('/operate/orders', where.startsWith('/operate/orders'), ot('op.orders'))}
      {tab('/operate/aside', where.startsWith('/operate/aside'), ot('op.aside'))}
    </nav>
  );
}
