import { Fragment, type ReactNode } from 'react'
import { cutAt } from '../model/cut.ts'
import { piecesOf } from '../model/joints.ts'

/**
 * A name that is cut in its middle where it does not fit: its end is what tells `…-worker-000122` from `…-worker-000123`. The whole
 * of it is the text of the document, for copying, finding and screen readers; what is drawn instead is not.
 */
export function Name({ text, className = '' }: { text: string; className?: string }): ReactNode {
  const [head, tail] = cutAt(text)
  if (tail === '') return className === '' ? text : <span className={className}>{text}</span>
  return (
    <span className={`name-cut ${className}`} title={text}>
      <span className="name-short" aria-hidden="true" data-head={head} data-tail={tail} />
      <span className="name-whole">{text}</span>
    </span>
  )
}

/** A sentence in which long names are cut in their middle, where there is little room. */
export const WithNames = ({ text }: { text: string }): ReactNode =>
  text.split(/(\S{20,})/).map((part, place) =>
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of one sentence have no other identity
    place % 2 === 0 ? part : <Name key={place} text={part} className="name-in-text" />,
  )

/**
 * Text on as many lines as it takes: its long words, such as addresses and labels, break where they are joined, not inside of a word. What
 * stands between backticks is a command.
 */
export const Jointed = ({ text }: { text: string }): ReactNode =>
  text.split(/`([^`]+)`/).map((part, place) =>
    place % 2 === 0 ? (
      // biome-ignore lint/suspicious/noArrayIndexKey: parts of one sentence have no other identity
      <Pieces key={place} text={part} />
    ) : (
      // biome-ignore lint/suspicious/noArrayIndexKey: as above
      <code key={place}>
        <Pieces text={part} />
      </code>
    ),
  )

const Pieces = ({ text }: { text: string }): ReactNode =>
  piecesOf(text).map((piece, place) => (
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of one sentence have no other identity
    <Fragment key={place}>
      {place > 0 && <wbr />}
      {piece}
    </Fragment>
  ))
