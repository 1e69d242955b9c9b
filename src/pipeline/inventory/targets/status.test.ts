import { expect, it } from 'vitest'
import type { TargetState } from './engine.ts'
import { statusOf } from './status.ts'

it('is not in sync where all of what it reads is forbidden, and is where a part of it is', () => {
  const state = { generation: 1, since: 0, matchedNamespaces: [], effectiveNamespaces: [], activeRules: 0, failures: 0 }
  const synced = (more: Partial<TargetState>) =>
    statusOf(
      { ...state, isComplete: false, isReading: false, forbidden: 'it may not be listed', ...more },
      {},
      { isOfCluster: false, now: 0 },
    ).conditions?.find(({ type }) => type === 'Synced')
  expect(synced({})).toMatchObject({ status: 'True', reason: 'ScopeForbidden' })
  expect(synced({ isBlind: true })).toMatchObject({
    status: 'False',
    reason: 'ScopeForbidden',
    message: 'it may not be listed',
  })
})
