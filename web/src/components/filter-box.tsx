import { IconFilter, IconHelp, IconX } from '@tabler/icons-react'
import type { ReactNode } from 'react'
import { splitTerms } from '../model/filter.ts'
import { Menu } from './menu.tsx'

interface FilterBoxProps {
  readonly text: string
  readonly onText: (text: string) => void
  readonly faults: readonly string[]
  readonly fields: readonly string[]
  /** some of the labels that rows have */
  readonly labels: readonly string[]
  readonly example: string
  readonly what: string
}

/** The filter as one line to type in; its terms below as chips that can be taken away one by one. */
export function FilterBox({ text, onText, faults, fields, labels, example, what }: FilterBoxProps): ReactNode {
  return (
    <div className="filter">
      <div className="filter-line">
        <IconFilter size={16} aria-hidden="true" className="filter-icon" />
        <input
          type="text"
          value={text}
          onChange={(event) => onText(event.target.value)}
          placeholder={example}
          aria-label={`Filter ${what}`}
          spellCheck={false}
          autoComplete="off"
          data-filter
        />
        {text !== '' && (
          <button type="button" className="icon-button" onClick={() => onText('')} aria-label="Clear the filter">
            <IconX size={15} aria-hidden="true" />
          </button>
        )}
        <Menu label={<IconHelp size={16} aria-hidden="true" />} title="How to filter" className="icon-button">
          <div className="menu-text">
            <p>
              Words are looked for in names. A field takes <code>:</code> is, <code>!=</code> is not, <code>~</code>{' '}
              holds, <code>&lt;</code> <code>&gt;</code> less, more. A leading <code>-</code> turns a term round; a
              comma means or; <code>none</code> finds what is not known.
            </p>
            <p>
              Fields:{' '}
              {fields.map((field) => (
                <code key={field}>{field}</code>
              ))}
              {labels.length > 0 && (
                <>
                  {' '}
                  and every label by its key, such as{' '}
                  {labels.map((label) => (
                    <code key={label}>{label}</code>
                  ))}
                </>
              )}
            </p>
          </div>
        </Menu>
      </div>
      {faults.length > 0 && (
        <p className="filter-faults" role="status">
          {faults.join(' · ')}
        </p>
      )}
      <Chips text={text} onText={onText} />
    </div>
  )
}

function Chips({ text, onText }: { text: string; onText: (text: string) => void }): ReactNode {
  const terms = splitTerms(text)
  if (!terms.some((term) => /[:=~<>]/.test(term))) return null
  return (
    <ul className="chips" aria-label="Terms of the filter">
      {terms.map((term, place) => (
        <li key={`${term} ${terms.indexOf(term) === place ? 0 : place}`}>
          <button
            type="button"
            className="chip"
            onClick={() => onText(terms.filter((_, other) => other !== place).join(' '))}
            aria-label={`Remove ${term}`}
          >
            {term} <IconX size={12} aria-hidden="true" />
          </button>
        </li>
      ))}
    </ul>
  )
}
