/** Notices on this device and on the others of the user, on the account page. */
import { useSignal } from '@preact/signals';
import { useEffect } from 'preact/hooks';
import { toFault } from '@seckill/client/fault';
import type { ResultOf } from '@seckill/client/operation';
import { request } from '../api/client';
import { forgetSubscription } from '../api/push';
import type { NoticeSettings } from '../documents/notices';
import { UnsubscribePush } from '../documents/push';
import { faultText, explain, moment, t } from '../i18n/text';
import { pushState, subscribe, type PushState } from '../purchase/push';
import { SuccessMessage } from '../ui/bits';

type Devices = NonNullable<NonNullable<ResultOf<typeof NoticeSettings>['viewer']>['noticeSettings']>['devices'];

/** The switch of this device, and the list of all. */
export function Push({ devices, pushKey, changed }: { devices: Devices; pushKey: string; changed: () => Promise<void> }) {
  const state = useSignal<PushState | null>(null);
  const busy = useSignal(false);
  const why = useSignal<string | null>(null);
  const known = devices.map(({ id }) => id).join();
  useEffect(() => {
    void pushState().then((found) => (state.value = found));
  }, [known]);
  const here = state.value;
  const current = here?.state === 'ready' && here.endpoint ? devices.find(({ endpoint }) => endpoint === here.endpoint) : undefined;
  const act = async (work: () => Promise<string | null>): Promise<void> => {
    busy.value = true;
    why.value = null;
    try {
      why.value = await work();
    } catch (thrown) {
      why.value = faultText(toFault(thrown));
    }
    await changed();
    state.value = await pushState();
    busy.value = false;
  };
  const turnOn = async (): Promise<string | null> => {
    const result = await subscribe(pushKey);
    switch (result.state) {
      case 'on':
      case 'denied': // or the user closed the question
        return null;
      case 'unreachable':
        return t('push.unreachable');
      case 'refused':
        return explain(result.failure);
    }
  };
  const remove = async (deviceId: string): Promise<string | null> => {
    const failure = (await request(UnsubscribePush, { input: { deviceId } })).unsubscribePush?.userErrors[0];
    if (failure) return explain(failure);
    if (deviceId === current?.id) await forgetSubscription();
    return null;
  };
  return (
    <div class="grid gap-3">
      {here?.state === 'unsupported' && <p class="text-soft">{t('push.unsupported')}</p>}
      {here?.state === 'uninstalled' && <p class="text-soft">{t('push.install')}</p>}
      {here?.state === 'denied' && <p class="note text-warn">{t('push.denied')}</p>}
      {current && <SuccessMessage>{t('push.on')}</SuccessMessage>}
      {here?.state === 'ready' && !current && (
        <button class="btn" disabled={busy.value} onClick={() => void act(turnOn)}>
          {t('push.turnOn')}
        </button>
      )}
      {devices.length > 0 && (
        <ul class="grid gap-2" aria-label={t('push.devices')}>
          {devices.map((device) => {
            const name = device.label || t('push.unnamed');
            return (
              <li key={device.id} class="flex flex-wrap items-baseline gap-x-4">
                <span class="mr-auto">{t(device === current ? 'push.here' : 'push.device', { name, time: moment(device.createdAt) })}</span>
                <button class="link" disabled={busy.value} aria-label={t('push.removeName', { name })} onClick={() => void act(() => remove(device.id))}>
                  {t('push.remove')}
                </button>
              </li>
            );
          })}
        </ul>
      )}
      {why.value && (
        <p class="text-danger" role="alert">
          {why.value}
        </p>
      )}
    </div>
  );
}
