/** Tabs of one browser share the person: who signs out in one leaves all. */
const channel = new BroadcastChannel('clusterpulse-signed-out')

export const tellSignedOut = (): void => channel.postMessage(null)

/** @param leave called when another tab said so */
export const onSignedOut = (leave: () => void): void => channel.addEventListener('message', leave)
