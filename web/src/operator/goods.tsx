/** The catalogue of products. */
import { useSignal } from '@preact/signals';
import { useRef } from 'preact/hooks';
import { useLoad } from '../api/load';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import { GoodsLog } from '../documents/goods-log';
import { CreateGoods, GoodsList, UpdateGoods } from '../documents/operator';
import { bounded } from '../forms/bounded';
import { money } from '../i18n/text';
import { Picture, Title } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { acted } from './asked';
import { Field, Form, Restored, type Values } from './form';
import { Log } from './log';
import { Paged } from './paged';
import { AltField, PictureField, usePicture } from './picture';
import { Search, useQuery } from './search';
import { ot } from './texts';
import { forget, keep, useUnsent } from './unsent';

type Each = NonNullable<ResultOf<typeof GoodsList>['goods']>['edges'][number]['node'];

export function Goods() {
  const [search, setSearch] = useQuery('q');
  const editing = useSignal<Each | 'new' | null>(null);
  const changes = useSignal(0);
  const discards = useSignal(0);
  return (
    <>
      <div class="mb-4 flex flex-wrap items-center justify-between gap-3">
        <Title>{ot('op.goods')}</Title>
        <div class="flex flex-wrap gap-3 max-sm:w-full">
          <Search label={ot('op.search')} text={search} found={setSearch} />
          <button class="btn btn-main" onClick={() => (editing.value = 'new')}>
            {ot('op.newGoods')}
          </button>
        </div>
      </div>
      <Paged
        name={`goods ${search} ${changes.value}`}
        ask={async (after, signal) => (await request(GoodsList, { after, search: search || null }, signal)).goods}
      >
        {(goods) => (
          <ul class="grid gap-2 sm:grid-cols-2">
            {goods.map((each) => (
              <li key={each.id} class="card relative flex flex-wrap items-center gap-3 p-3 has-[button:hover]:border-edge">
                <Picture goods={each} inList class="size-14 shrink-0 rounded-lg" />
                <button class="min-w-0 grow basis-28 text-left font-medium after:absolute after:inset-0" onClick={() => (editing.value = each)}>
                  <bdi>{each.name}</bdi>
                </button>
                <span class="tabular-nums">{money(each.listPrice)}</span>
              </li>
            ))}
          </ul>
        )}
      </Paged>
      {editing.value && (
        <Editor
          key={editing.value === 'new' ? `new ${discards.value}` : editing.value.id}
          goods={editing.value === 'new' ? null : editing.value}
          close={() => (editing.value = null)}
          discard={() => (forget('product'), discards.value++)}
          done={() => {
            editing.value = null;
            changes.value++;
          }}
        />
      )}
    </>
  );
}

function Editor({ goods, close, discard, done }: { goods: Each | null; close: () => void; discard: () => void; done: () => void }) {
  const picture = usePicture(goods?.imageUrl ?? '');
  const box = useRef<HTMLDivElement>(null);
  const form = (): HTMLFormElement | null | undefined => box.current?.querySelector('form');
  const restored = useUnsent('product', form, goods === null);
  /** Keeps what was typed of a new product. */
  const keepForm = (): void => {
    const typed = form();
    if (!goods && typed) keep('product', typed);
  };
  const send = async ({ name = '', price = '', currency = '', description = '', imageAlt = '' }: Values) => {
    const imageUrl = await picture.result();
    const input = { name, description, listPrice: { amount: price, currencyCode: currency } };
    if (!goods) {
      const { createGoods } = await request(CreateGoods, { input: { ...input, imageUrl: imageUrl || null, imageAlt: imageAlt || null } });
      if (createGoods?.goods) forget('product');
      return createGoods?.userErrors;
    }
    const change = { ...input, imageAlt, goodsId: goods.id, ...(imageUrl !== (goods.imageUrl ?? '') && { imageUrl }) };
    const { updateGoods } = await request(UpdateGoods, { input: change });
    if (updateGoods?.intervention) acted(updateGoods.intervention);
    return updateGoods?.userErrors;
  };
  return (
    <Dialog title={goods ? goods.name : ot('op.newGoods')} close={close}>
      <div ref={box} onInput={keepForm} onChange={keepForm}>
      <Form sticky send={send} done={done} label={ot(goods ? 'op.change' : 'op.create')}>
        {restored && <Restored discard={discard} />}
        <Field label={ot('op.name')}>
          <input name="name" class="field font-normal" required ref={bounded({ most: 120 })} defaultValue={goods?.name} />
        </Field>
        <div class="grid grid-cols-2 gap-3">
          <Field label={ot('op.usual')}>
            <input name="price" class="field font-normal" type="number" min="0" step="any" required defaultValue={goods?.listPrice.amount} />
          </Field>
          <Field label={ot('op.currency')}>
            <input
              name="currency"
              class="field font-normal"
              defaultValue={goods?.listPrice.currencyCode ?? 'CNY'}
              readOnly={goods !== null}
              required
              pattern="[A-Z]{3}"
              placeholder="CNY"
            />
          </Field>
        </div>
        <Field label={ot('op.description')}>
          <textarea name="description" class="field font-normal" rows={4} ref={bounded({ most: 10_000 })} defaultValue={goods?.description} />
        </Field>
        <PictureField picture={picture} />
        <AltField text={goods?.imageAlt ?? ''} />
      </Form>
      </div>
      {goods && <GoodsHistory id={goods.id} />}
    </Dialog>
  );
}

/** The audit log of the product. */
function GoodsHistory({ id }: { id: string }) {
  const { page } = useLoad(`goods log ${id}`, async (signal) => {
    const { node } = await request(GoodsLog, { id }, signal);
    return node?.__typename === 'Goods' ? node.timeline : null;
  });
  if (page.value.state !== 'ready' || !page.value.data.length) return null;
  return (
    <section class="mt-5 border-t border-line pt-4">
      <h3 class="mb-3 font-semibold">{ot('op.log')}</h3>
      <Log entries={page.value.data} names={{}} />
    </section>
  );
}
