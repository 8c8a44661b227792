/** The subscription of this browser at its push service, if there is one. */
export async function subscriptionHere(): Promise<PushSubscription | null> {
  const registration = await navigator.serviceWorker?.getRegistration('/');
  return (await registration?.pushManager?.getSubscription()) ?? null;
}

/** Makes this browser forget its subscription. What the shop still sends is refused by the push service. */
export async function forgetSubscription(): Promise<void> {
  await (await subscriptionHere())?.unsubscribe();
}
