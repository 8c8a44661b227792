/** Which notices the signed-in user gets. */
import { useSignal } from '@preact/signals';
import { useLoad } from '../api/load';
import { toFault } from '@seckill/client/fault';
import { request } from '../api/client';
import type { ResultOf } from '@seckill/client/operation';
import { NoticeSettings, UpdateNoticeSettings } from '../documents/notices';
import { faultText, explain, t } from '../i18n/text';
import { FaultMessage, Loading } from '../ui/bits';
import { Push } from './push';

type Settings = NonNullable<NonNullable<ResultOf<typeof NoticeSettings>['viewer']>['noticeSettings']>;
type Choice = Settings['choices'][number];
type Channel = Settings['offered'][number];

/** The section of the account page; nothing where the shop has no channel. */
export function Notices() {
  const { page, reload } = useLoad('notices', async (signal) => {
    const { viewer, serverInfo } = await request(NoticeSettings, {}, signal);
    return viewer?.noticeSettings ? { ...viewer.noticeSettings, pushKey: serverInfo?.pushKey ?? null } : null;
  });
  const why = useSignal<string | null>(null);
  if (page.value.state === 'failed') return <FaultMessage fault={page.value.fault} again={reload} />;
  if (page.value.state === 'loading') return <Loading />;
  if (page.value.state === 'missing' || page.value.data.offered.length === 0) return null;
  const { offered, reaching, choices, devices, pushKey } = page.value.data;
  const shown = offered.filter((channel) => channel !== 'PUSH' || devices.length > 0);
  const set = async ({ kind, channels }: Choice, channel: Channel, on: boolean): Promise<void> => {
    const others = channels.filter((each) => each !== channel);
    why.value = null;
    try {
      const { updateNoticeSettings } = await request(UpdateNoticeSettings, {
        input: { choices: [{ kind, channels: on ? [...others, channel] : others }] },
      });
      const failure = updateNoticeSettings?.userErrors[0];
      if (failure) why.value = explain(failure);
    } catch (thrown) {
      why.value = faultText(toFault(thrown));
    }
    await reload();
  };
  return (
    <section class="card grid gap-3 p-5" id="notices">
      <h2 class="head">{t('notices.title')}</h2>
      {offered.includes('MAIL') && !reaching.includes('MAIL') && <p class="note text-warn">{t('notices.unverified')}</p>}
      {pushKey && <Push devices={devices} pushKey={pushKey} changed={reload} />}
      {choices.filter((choice) => shown.some((channel) => choice.offered.includes(channel))).map((choice) => (
        <fieldset key={choice.kind} class="flex flex-wrap items-baseline gap-x-4 gap-y-1">
          <legend class="float-left mr-auto font-medium">{t(`notices.${choice.kind}`)}</legend>
          {shown.filter((channel) => choice.offered.includes(channel)).map((channel) => (
            <label key={channel} class="flex cursor-pointer items-center gap-2 py-1">
              <input
                type="checkbox"
                class="size-4 accent-ink"
                checked={choice.channels.includes(channel)}
                onChange={(event) => void set(choice, channel, event.currentTarget.checked)}
              />
              {t(`notices.${channel}`)}
            </label>
          ))}
        </fieldset>
      ))}
      {why.value && (
        <p class="text-danger" role="alert">
          {why.value}
        </p>
      )}
    </section>
  );
}
