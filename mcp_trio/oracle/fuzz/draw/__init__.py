"""Cases drawn at random for what a target offers, legal and illegal ones.

1. A case is a beginning and a few phrases. A phrase is a short list of steps that belong together,
   such as a call and its cancellation, because single steps rarely meet each other by chance.
2. No step depends on an answer, so a case can be stored and cut.
3. Most requests are valid. Damage is in a few cases that have little else: after it less is certain
   about the server, and these cases share a process only with each other.
4. What needs a process of its own is drawn early and then seldom.

`CaseSource` (`_cases`) draws what `CaseChoices` (`_choices`) allow. A phrase is a function of a
`Drawing`, the choices and a revision; `_phrases` says how often each one is drawn. Phrases are in
`_requests`, `_calls`, `_http`, `_damaging` and `_stress`. `_second_client` has the
ones with two clients. Only this folder and the strategies need hypothesis.
"""
