import { type ReactNode, useId, useMemo, useState } from 'react'
import type { SourcesView } from '../../contract.ts'

/** The functions of expressions, to look up and to put in. */
export function FunctionList({
  functions,
  onInsert,
}: {
  functions: SourcesView['functions']
  onInsert: (text: string) => void
}): ReactNode {
  const id = useId()
  const [word, setWord] = useState('')
  const shown = useMemo(() => {
    const low = word.trim().toLowerCase()
    return functions.filter(({ name, description }) => `${name} ${description}`.toLowerCase().includes(low))
  }, [functions, word])
  if (functions.length === 0) return null
  return (
    <details className="panel functions">
      <summary>
        <h2>Functions of expressions</h2>
      </summary>
      <label className="vh" htmlFor={id}>
        Find a function
      </label>
      <input
        id={id}
        className="functions-find"
        value={word}
        placeholder="Find: round, time, text…"
        autoComplete="off"
        spellCheck={false}
        onChange={(event) => setWord(event.target.value)}
      />
      <ul>
        {shown.map(({ name, signature, description }) => (
          <li key={name}>
            <button
              type="button"
              className="text-button mono"
              data-tip="Put it at the caret"
              onClick={() => onInsert(`${name}(`)}
            >
              {signature}
            </button>
            <span className="fine">{description}</span>
          </li>
        ))}
      </ul>
      {shown.length === 0 && <p className="fine">No function is called so.</p>}
    </details>
  )
}
