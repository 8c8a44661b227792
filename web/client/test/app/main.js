/** Buys with the package, as a page of any bundler: no setting is for it. */
import { buy, cancelOrder, createClient, documents, Http, PasswordSession } from '@seckill/client';

const query = new URLSearchParams(location.search);
const url = `${query.get('api')}/graphql`;
const session = new PasswordSession(new Http({ url }));
const client = createClient({ url, session });
const states = new Set();
client.connection.subscribe(({ state }) => states.add(state));

async function run() {
  await session.signIn(query.get('account'), 'flash-sale-demo');
  const { sale } = await client.request(documents.OneSale, { by: { slug: query.get('sale') } });
  const { order } = await buy(client, { saleId: sale.id, itemId: sale.items[0].id });
  await cancelOrder(client, order.id); // so that the next one may buy
  return `bought ${order.number} over ${states.has('live') ? 'live' : 'polls'}`;
}

run().catch((thrown) => `failed: ${thrown.stack}`).then((text) => (document.querySelector('output').textContent = text));
