import { expect, it } from 'vitest'
import { groupOf } from './writers.ts'

it('meets in one group those of one topic, cluster and namespace alone, though all but the last may have dots', () => {
  const groups = [
    groupOf('inventory.x', { cluster: 'west', namespace: 'team-a' }),
    groupOf('inventory', { cluster: 'x.west', namespace: 'team-a' }),
    groupOf('inventory', { cluster: 'x.west/team-a', namespace: '' }),
    groupOf('inventory', { cluster: 'x.west', namespace: '' }),
    groupOf('inventory', { cluster: 'x.west', namespace: 'team-z' }),
  ]
  expect(new Set(groups).size).toBe(groups.length)
  for (const group of groups) expect(group).toMatch(/^clusterpulse-writers\./)
})
