'use client';
/** Buys with the hook, and shows the component. */
import { answerByWork, cancelOrder, createClient, Http, PasswordSession } from '@seckill/client';
import { useDrop, useSale } from '@seckill/client/react';
import '@seckill/client/seckill-drop';
import { useEffect, useRef, useState } from 'react';

function Buy({ client, slug }) {
  const sale = useSale(client, slug);
  const { drop, state } = useDrop(client, slug);
  const [text, setText] = useState('');
  const states = useRef(new Set());
  useEffect(() => client.connection.subscribe(({ state }) => states.current.add(state)), []);
  const asked = useRef(false); // the page shows Buy again after the cancellation
  const kind = state?.view.kind;
  useEffect(() => {
    if (kind === 'buy' && !asked.current) {
      asked.current = true;
      drop.buy();
    }
    if (kind === 'check') answerByWork(client, state.sale.id, state.view.challenge).then((answer) => drop.answer(answer));
    if (kind === 'pay' && state.view.order) {
      const { id, number } = state.view.order;
      cancelOrder(client, id).then(() => setText(`bought ${number} over ${states.current.has('live') ? 'live' : 'polls'}`));
    }
  }, [kind, !!state?.view.order]);
  return <output data-title={sale?.title}>{text || (state?.problem ? `failed: ${state.problem.code}` : '')}</output>;
}

export default function Page() {
  const [given, setGiven] = useState(null);
  useEffect(() => {
    const query = new URLSearchParams(location.search);
    const api = query.get('api');
    const session = new PasswordSession(new Http({ url: `${api}/graphql` }));
    const client = createClient({ url: `${api}/graphql`, session });
    session.signIn(query.get('account'), 'flash-sale-demo').then(() => setGiven({ client, api, slug: query.get('sale') }));
  }, []);
  if (!given) return null;
  return (
    <>
      <Buy client={given.client} slug={given.slug} />
      <seckill-drop sale={given.slug} api={given.api} />
    </>
  );
}
