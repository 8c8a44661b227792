// Shows notices while no page of the shop is open. It answers no requests and stores nothing.

self.addEventListener('install', () => self.skipWaiting());

self.addEventListener('push', (event) => {
  const { title, body, path, tag, language } = event.data.json();
  event.waitUntil(self.registration.showNotification(title, { body, tag, renotify: true, lang: language, data: { path } }));
});

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil(show(event.notification.data.path));
});

/** Opens a page of the shop, in the tab that shows it if there is one. */
async function show(path) {
  const { href } = new URL(path, self.location.origin);
  const tabs = await self.clients.matchAll({ type: 'window', includeUncontrolled: true });
  const there = tabs.find(({ url }) => url === href);
  return there ? there.focus() : self.clients.openWindow(href);
}
