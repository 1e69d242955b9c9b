import type { OwnerPlace } from '#model'
import { channelToParent } from '#processes'
import { keepHeapTight } from '#runtime'
import { type HubOptions, openHub } from './hub.ts'

/* One of the processes that share the clusters of `ours.ts`, as `manager` starts them with MANAGER_PROCESSES. */

export type ToOwner =
  | { readonly kind: 'begin'; readonly options: HubOptions; readonly place: OwnerPlace; readonly port: number }
  | { readonly kind: 'settle' }
  | { readonly kind: 'end' }

export interface FromOwner {
  readonly kind: 'listening'
  readonly port: number
}

keepHeapTight()
let hub: ReturnType<typeof openHub> | undefined
const channel = channelToParent<FromOwner, ToOwner>({
  heard(message) {
    if (message.kind === 'end') process.exit()
    if (message.kind !== 'begin') return
    hub = openHub(message.options, message.place, message.port)
    void hub.then(({ port }) => channel.tell({ kind: 'listening', port }))
  },
  asked: async () => (await hub)?.settle(),
  closed: () => process.exit(),
})
