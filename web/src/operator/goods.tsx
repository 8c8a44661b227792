/** The catalogue: what can be put on sale. */
import { useSignal } from '@preact/signals';
import { toFault } from '../api/fault';
import { request } from '../api/request';
import { CreateGoods, GoodsList } from '../documents/operator';
import { apologise, explain, money } from '../i18n/text';
import { Picture, Title } from '../ui/bits';
import { Dialog } from '../ui/dialog';
import { decimal, Field, values } from './form';
import { Paged } from './paged';
import { Search } from './search';
import { ot } from './texts';

/** The page. */
export function Goods() {
  const search = useSignal('');
  const adding = useSignal(false);
  const made = useSignal(0);
  return (
    <>
      <div class="mb-4 flex flex-wrap items-center justify-between gap-3">
        <Title>{ot('op.goods')}</Title>
        <div class="flex flex-wrap gap-3 max-sm:w-full">
          <Search found={(text) => (search.value = text)} />
          <button class="btn btn-main" onClick={() => (adding.value = true)}>
            {ot('op.newGoods')}
          </button>
        </div>
      </div>
      <Paged
        name={`goods ${search.value} ${made.value}`}
        ask={async (after, signal) => (await request(GoodsList, { after, search: search.value || null }, signal)).goods}
      >
        {(goods) => (
          <ul class="grid gap-2 sm:grid-cols-2">
            {goods.map((each) => (
              <li key={each.id} class="card flex items-center gap-3 p-3">
                <Picture goods={each} class="size-14 shrink-0 rounded-lg" />
                <span class="grow font-medium">{each.name}</span>
                <span class="tabular-nums">{money(each.listPrice)}</span>
              </li>
            ))}
          </ul>
        )}
      </Paged>
      {adding.value && (
        <NewGoods
          close={() => (adding.value = false)}
          done={() => {
            adding.value = false;
            made.value++;
          }}
        />
      )}
    </>
  );
}

function NewGoods({ close, done }: { close: () => void; done: () => void }) {
  const why = useSignal<string | null>(null);
  const send = async (form: HTMLFormElement): Promise<void> => {
    const { name = '', price = '', currency = '', description = '', picture } = values(form);
    try {
      const { createGoods } = await request(CreateGoods, {
        input: { name, description, imageUrl: picture || null, listPrice: { amount: decimal(price), currencyCode: currency } },
      });
      const failure = createGoods?.userErrors[0];
      if (failure) why.value = explain(failure);
      else done();
    } catch (thrown) {
      why.value = apologise(toFault(thrown));
    }
  };
  return (
    <Dialog title={ot('op.newGoods')} close={close}>
      <form
        class="grid gap-3"
        onSubmit={(event) => {
          event.preventDefault();
          void send(event.currentTarget);
        }}
      >
        <Field label={ot('op.name')}>
          <input name="name" class="field font-normal" required maxLength={120} />
        </Field>
        <div class="grid grid-cols-2 gap-3">
          <Field label={ot('op.usual')}>
            <input name="price" class="field font-normal" type="number" min="0.01" step="0.01" required />
          </Field>
          <Field label={ot('op.currency')}>
            <input name="currency" class="field font-normal" defaultValue="CNY" required pattern="[A-Z]{3}" maxLength={3} />
          </Field>
        </div>
        <Field label={ot('op.description')}>
          <textarea name="description" class="field font-normal" rows={4} maxLength={10000} />
        </Field>
        <Field label={ot('op.picture')}>
          <input name="picture" class="field font-normal" maxLength={2048} />
        </Field>
        {why.value && (
          <p class="font-medium text-warn" role="alert">
            {why.value}
          </p>
        )}
        <button class="btn btn-main">{ot('op.create')}</button>
      </form>
    </Dialog>
  );
}
