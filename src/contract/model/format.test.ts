import { describe, expect, it } from 'vitest'
import { decideFormat, parseFormat, type StoredFormat, StoredFormatError, UNNUMBERED } from './format.ts'

const ours: StoredFormat = { format: 3, readableFrom: 2, program: '1.2.0+aaaaaaaaaaaa' }
const as = (format: number, readableFrom: number, program: string) => ({ format, readableFrom, program })
const decide = (found: Parameters<typeof decideFormat>[0]) => decideFormat(found, ours, 'the data folder /data')

describe('the form of stored data', () => {
  it.each<[string, Parameters<typeof decideFormat>[0], object]>([
    ['begins where there is nothing', 'none', { writes: true }],
    ['is left alone where it is ours', ours, { writes: false }],
    ['names the build that goes on', as(3, 2, '1.2.0+bbbbbbbbbbbb'), { writes: true, level: 'info' }],
    ['is upgraded, and said', as(2, 1, '1.1.0'), { writes: true, level: 'warn' }],
    ['is upgraded from before there were numbers', UNNUMBERED, { writes: true, level: 'warn' }],
    ['of a later version that we can read is warned of, and kept', as(4, 3, '1.3.0'), { writes: false, level: 'warn' }],
    ['of a later version in the same form is warned of', as(3, 2, '1.10.0'), { writes: true, level: 'warn' }],
    ['is not compared where a program has no version', as(3, 2, '0.0.0-dev'), { writes: true, level: 'info' }],
  ])('%s', (_, found, decision) => expect(decide(found)).toMatchObject(decision))

  it('says from what to what it is upgraded', () =>
    expect(decide(as(2, 1, '1.1.0+c')).sentence).toBe(
      'the data folder /data is upgraded from format 2 (1.1.0+c) to 3 (1.2.0+aaaaaaaaaaaa)',
    ))

  it('says of a downgrade what is ignored', () =>
    expect(decide(as(4, 3, '1.3.0')).sentence).toMatch(/written by 1\.3\.0 .*older 1\.2\.0.*access policies first/))

  it('is refused where we would misread it, with both versions and the next step', () => {
    const refusal = () => decide(as(5, 4, '2.0.0+c'))
    expect(refusal).toThrow(StoredFormatError)
    expect(refusal).toThrow(
      /format 5, written by 2\.0\.0\+c; this is 1\.2\.0\+a.* formats up to 3.*Start 2\.0\.0\+c .*again/,
    )
  })

  it('is refused where nobody can tell', () => expect(() => decide('unreadable')).toThrow(/cannot be read.*remove it/))

  it.each(['', 'x', '{}', '{"format":1}', '{"format":-1,"readableFrom":1,"program":"a"}', 'null'])(
    'takes no form from %j',
    (text) => expect(parseFormat(text)).toBeUndefined(),
  )
})
