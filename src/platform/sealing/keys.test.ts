import { randomBytes } from 'node:crypto'
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import fc from 'fast-check'
import { describe, expect, it, onTestFinished } from 'vitest'
import { keptKeys } from './kept-keys.ts'
import { keyId, parseKeys } from './local-keys.ts'

describe('keys of a setting', () => {
  it('are read in base64, base64url and hex, one a line or by commas, in their order', () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.tuple(fc.constantFrom('base64', 'base64url', 'hex' as const), fc.constantFrom('\n', ',', '\r\n', ' , ')),
          {
            minLength: 1,
            maxLength: 4,
          },
        ),
        (forms) => {
          const keys = forms.map(() => randomBytes(32))
          const text = forms.map(([form, end], i) => `${keys[i]?.toString(form)}${end}`).join('')
          expect(parseKeys(text)).toEqual(keys)
        },
      ),
    ))

  it.each([
    ['', 'nothing'],
    ['\n', 'nothing'],
    ['correct horse battery staple', 'a sentence'],
    [randomBytes(31).toString('base64'), 'too few bytes'],
    [randomBytes(33).toString('base64'), 'too many bytes'],
    [Buffer.alloc(32).toString('base64'), 'zeros'],
    ['a'.repeat(43), 'one letter'],
    ['deadbeef'.repeat(8), 'a word repeated'],
    [`${randomBytes(32).toString('base64')}\nx`, 'a key and something else'],
  ])('%j is refused: %s', (text) => expect(parseKeys(text)).toBeUndefined())

  it('are named by something that says nothing of them, and is theirs alone', () => {
    const key = randomBytes(32)
    expect(keyId(key)).toMatch(/^[0-9a-f]{16}$/)
    expect(key.toString('hex')).not.toContain(keyId(key))
    expect(keyId(key)).not.toBe(keyId(randomBytes(32)))
  })
})

describe('the key of a folder', () => {
  const aPath = () => {
    const folder = mkdtempSync(join(tmpdir(), 'keys-'))
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
    return join(folder, 'encryption.key')
  }
  const dataKey = randomBytes(32)

  it('is made when something is sealed, not before, for its owner alone, and stays', async () => {
    const path = aPath()
    const made: string[] = []
    const keys = await keptKeys({ path, given: [], onMade: (id) => made.push(id) })
    await expect(keys.unwrap(Buffer.alloc(60), 'aaaa')).rejects.toMatchObject({ keyId: 'aaaa', known: [] })
    expect([existsSync(path), keys.ids()]).toEqual([false, []])
    const [wrapped] = await Promise.all([keys.wrap(dataKey), keys.wrap(dataKey)])
    expect(made).toEqual([keys.id])
    for (const one of [path, `${path}.copy`]) expect(statSync(one).mode & 0o777).toBe(0o600)
    const again = await keptKeys({ path, given: [], onMade: (id) => made.push(id) })
    expect(Buffer.from(await again.unwrap(wrapped, keys.id))).toEqual(dataKey)
    expect(made).toEqual([keys.id])
  })

  it('survives any harm to one of its two files, and is whole in both again', async () => {
    const path = aPath()
    const keys = await keptKeys({ path, given: [] })
    await keys.wrap(dataKey)
    const whole = readFileSync(path)
    await fc.assert(
      fc.asyncProperty(fc.constantFrom(path, `${path}.copy`), fc.nat(3), fc.nat(), async (one, how, at) => {
        const harmed = Buffer.from(whole)
        harmed.writeUInt8((harmed[at % whole.length] ?? 0) ^ (1 + (at % 255)), at % whole.length)
        if (how === 0) rmSync(one)
        else if (how === 1) truncateSync(one, at % whole.length)
        else writeFileSync(one, how === 2 ? harmed : '')
        const again = await keptKeys({ path, given: [] })
        expect(again.id).toBe(keys.id)
        const texts = [readFileSync(path, 'utf8'), readFileSync(`${path}.copy`, 'utf8')]
        for (const text of texts) expect(text.trim()).toBe(whole.toString().trim())
      }),
      { numRuns: 60 },
    )
  })

  it('gives way to one that is given, and opens on', async () => {
    const path = aPath()
    const kept = await keptKeys({ path, given: [] })
    const wrapped = await kept.wrap(dataKey)
    const given = randomBytes(32)
    const both = await keptKeys({ path, given: [given] })
    expect([both.id, both.ids()]).toEqual([keyId(given), [keyId(given), kept.id]])
    expect(Buffer.from(await both.unwrap(wrapped, kept.id))).toEqual(dataKey)
  })

  it('is not made where one is given', async () => {
    const path = aPath()
    const keys = await keptKeys({ path, given: [randomBytes(32)] })
    await keys.wrap(dataKey)
    expect(existsSync(path)).toBe(false)
  })
})
