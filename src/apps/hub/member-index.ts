import type { KubeClient } from '#kube'
import { systemClock } from '#model'
import { MemberIndex } from '#registration'
import { type HubLogger, part } from './run.ts'

/** Who is a member, for the page and the API; does not wait for the hub's objects. */
export const memberIndexPart = (hub: () => KubeClient, logger: HubLogger) =>
  part<MemberIndex>('member-index', () => {
    const index = new MemberIndex({ hub: hub(), logger: logger.child({ part: 'member-index' }), clock: systemClock })
    index.start()
    return Promise.resolve(index)
  })
