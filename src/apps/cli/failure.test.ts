import { mkdtempSync, readFileSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { FleetError } from '#model'
import { UnknownKeyError } from '#sealing'
import { failureOf } from './failure.ts'

const thrown = (action: () => unknown): unknown => {
  try {
    return action()
  } catch (error) {
    return error
  }
}

it('says of a file that the system refuses which one it is and what may be done, without a stack', () => {
  const folder = mkdtempSync(join(tmpdir(), 'failure-'))
  const { text, status } = failureOf(thrown(() => writeFileSync(join(folder, 'none', 'x.yaml'), '')))
  expect(text).toBe(
    `${folder}/none/x.yaml cannot be used (ENOENT): it is not there, or the folder it should be in is not; check how it is written`,
  )
  expect(status).toBe(1)
  const denied = Object.assign(new Error('no'), { code: 'EACCES', path: '/data/log', syscall: 'open' })
  expect(failureOf(denied).text).toBe(
    '/data/log cannot be used (EACCES): this user may not use it; give it to the user who runs this, or name another place',
  )
})

it('keeps the stack of a mistake of our own', () => {
  expect(failureOf(thrown(() => (undefined as unknown as string).length)).text).toMatch(/TypeError.*\n\s+at /s)
  // A folder that is read says no path.
  expect(failureOf(thrown(() => readFileSync(tmpdir()))).text).toMatch(/EISDIR/)
})

it('says the code of each of our errors, as the documentation has it, behind the first line', () => {
  expect(failureOf(new UnknownKeyError('k1', [])).text).toMatch(
    /^something is sealed with the key k1.* \(encryption_key_missing\)$/,
  )
  class TwoLines extends FleetError {
    readonly code = 'two_lines'
    readonly retryable = false
  }
  expect(failureOf(new TwoLines('one:\n  two')).text).toBe('one: (two_lines)\n  two')
})
