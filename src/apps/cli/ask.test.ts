import { PassThrough } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { asker } from './ask.ts'

describe('questions on the terminal', () => {
  it('take the line that was written, or what is usual, also of lines that came before their question', async () => {
    const input = new PassThrough()
    const output = new PassThrough()
    await using terminal = asker(input, output)
    input.write('  A \n\nC\n')
    expect(await terminal.ask('one?', 'u1')).toBe('A')
    expect(await terminal.ask('two?', 'u2')).toBe('u2')
    expect(await terminal.ask('three?', 'u3')).toBe('C')
    expect(String(output.read())).toContain('two? [u2] ')
  })

  it('end in a sentence where nobody answers any more', async () => {
    const input = new PassThrough()
    await using terminal = asker(input, new PassThrough())
    input.end('A\n')
    expect(await terminal.ask('one?', 'u')).toBe('A')
    await expect(terminal.ask('two?', 'u')).rejects.toThrow('nothing was written')
  })
})
