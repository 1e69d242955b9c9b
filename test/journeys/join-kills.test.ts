import { expect, it } from 'vitest'
import { JoinKills } from '../join-kills.ts'

it('machines and a hub that are killed at any step: no member is lost, none doubled, no credential is elsewhere', async () => {
  await using kills = await JoinKills.open()
  const { faults, members } = await kills.run(4, 3)
  expect(faults).toEqual([])
  expect(members).toBeGreaterThan(0)
})
