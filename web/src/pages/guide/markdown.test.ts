import fc from 'fast-check'
import { describe, expect, it } from 'vitest'
import { guideHtml } from './markdown.ts'

const html = (markdown: string) => guideHtml(markdown, (to) => (to.endsWith('.md') ? to.slice(0, -3) : undefined)).html

describe('the Markdown of a guide', () => {
  it.each([
    ['two\nlines', '<p>two\nlines</p>'],
    ['## Your *own* `kind`', '<h2 id="your-own-kind">Your <i>own</i> <code>kind</code></h2>'],
    ['    a < b\n\n    c', '<pre><code>a &lt; b\n\nc</code></pre>'],
    ['```yaml\na: "b"\n```\nafter', '<pre><code>a: &quot;b&quot;</code></pre>\n<p>after</p>'],
    ['- one\n  goes on\n- **two**', '<ul><li>one\ngoes on</li><li><b>two</b></li></ul>'],
    ['1. one\n2. two', '<ol><li>one</li><li>two</li></ol>'],
    ['[push](push.md) and [src](../src/a.ts)', '<p><a href="push">push</a> and src (<code>src/a.ts</code>)</p>'],
    ['[`src/a.ts`](../src/a.ts)', '<p><code>src/a.ts</code></p>'],
    ['`[a](b.md)`', '<p><code>[a](b.md)</code></p>'],
  ])('%j', (markdown, expected) => expect(html(markdown)).toBe(expected))

  it('keeps a bar that belongs to a cell', () =>
    expect(html('| a | b |\n|---|---|\n| x\\|y | z |')).toContain('<td>x|y</td><td>z</td>'))

  it('takes the first heading as the title and not into the text', () =>
    expect(guideHtml('# The first hour\n\nHello', () => undefined)).toEqual({
      title: 'The first hour',
      html: '<p>Hello</p>',
    }))

  it('ends, and takes nothing of what is written as HTML', () =>
    fc.assert(
      fc.property(
        fc
          .array(fc.constantFrom('# a', '<script>', '- x', '| a |', '    c', '```', '*', '[x](y)', '', '"'))
          .map((lines) => lines.join('\n')),
        (markdown) => {
          expect(html(markdown)).not.toContain('<script')
        },
      ),
    ))
})
