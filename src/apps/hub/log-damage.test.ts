import { expect, it } from 'vitest'
import { damageText } from './owner.ts'

const at = { kind: 'damaged', offset: 0, bytes: 0, index: undefined } as const

it('a damaged log says what is lost with the place and what to do, and no more than that', () => {
  expect(damageText({ ...at, segment: '*.segment' })).toMatch(
    /^all records of the log are gone.*is lost.*check the disk/,
  )
  expect(damageText({ ...at, segment: '0000000000000000.segment' })).toMatch(/^a place.*is lost.*from a backup/)
  expect(damageText({ ...at, segment: 'id' })).toMatch(/^the file id of the log is missing/)
  expect(damageText({ ...at, segment: 'state.checkpoint' })).not.toMatch(/is lost/)
  expect(damageText({ ...at, kind: 'torn', segment: '0000000000000000.segment' })).not.toMatch(/is lost/)
})
