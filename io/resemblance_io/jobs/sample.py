"""A synthetic corpus with known duplicates: names, titles and paragraphs in seven scripts.

Every text is a pure function of ``(seed, entity number)``, computed with integer arithmetic alone,
so that a copy can be written far from its original without keeping the original in memory, and the
corpus is the same on every platform. Rows are laid out in groups of one hundred with a fixed
composition (:data:`_GROUP`), then scattered over the file by a modular stride.
"""

from __future__ import annotations

import functools
import math
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from resemblance_io.errors import InputError
from resemblance_io.sinks import OutputFile

__all__ = ["Sample", "sample"]

_Ints = npt.NDArray[np.int64]
_Hashes = npt.NDArray[np.uint64]
_Bools = npt.NDArray[np.bool_]

BLOCK_ROWS: Final = 65_536

KINDS: Final = (
    "unique",
    "original",
    "exact",
    "edited",
    "shuffled",
    "boilerplate",
    "empty",
    "null",
)
_UNIQUE, _ORIGINAL, _EXACT, _EDITED, _SHUFFLED, _BOILERPLATE, _EMPTY, _NULL = range(len(KINDS))

# One group of a hundred rows: letters are kinds, a word is a cluster (its original first). Mixed so
# that a short corpus has about the same composition as a long one.
_COMPOSITION: Final = (
    "u u u oe u u ox u u b u u oe u u oxxeees u u n u u ox u u b u u os u u oe u u z u u ox u u "
    "b u u oe u u u oeee u u b u u ox u u n u u b u u oe u u os u u u b u u u u u u u u u u u"
)
_GROUP: Final = tuple(_COMPOSITION.split())
_LETTERS: Final = dict(zip("uoxesbzn", range(len(KINDS)), strict=True))

SCHEMA: Final = pa.schema([("id", pa.int64()), ("text", pa.string()), ("source", pa.string())])
TRUTH_SCHEMA: Final = pa.schema(
    [("row", pa.int64()), ("cluster", pa.int64()), ("kind", pa.string())]
)
SOURCES: Final = ("forum", "news", "catalogue", "encyclopedia", "mail")

_BLANKS: Final = ("", " ", "\t", " \u00a0 ")


# --- vocabulary ----------------------------------------------------------------------------------


class _Script(NamedTuple):
    """What texts of one script are made of."""

    share: int  # of every 32 texts
    words: str  # the most frequent words, most frequent first
    given: str  # given names
    onsets: str  # coined words are onset + nucleus, repeated
    nuclei: str
    space: str
    stop: str
    boilerplate: tuple[str, str]  # before and after a text


_SCRIPTS: Final = (
    _Script(
        12,
        "the of and to in a is for that on with as by it at from this be an are or was not have "
        "which you but one all can more new other time only some could these two may first then "
        "any like now such people over man our even most made after also did many before must "
        "through back years where much your way well down should because each just those how too "
        "little state good very make world still own see men work long get here between both "
        "life being under never day same another know while last might us great old year off "
        "café naïve über façade año garçon señor smörgåsbord crème piñata",
        "Ana Zoë José Müller Søren François Łukasz Çelik Maria John Eva Noor Björn Chloé Iñaki Ada",
        "bdfgklmnprstvzjš",
        "aeou",
        " ",
        ".",
        (
            "This message and any attachment are confidential. ",
            " All rights reserved. Terms and conditions apply.",
        ),
    ),
    _Script(
        5,
        "и в не на я быть он с что а по это она этот к но они мы весь который из у который то "
        "за свой весь год от так о для ты же все тот мочь вы человек такой его сказать только "
        "или ещё бы себя один как уже до время если сам когда другой вот говорить наш мой знать "
        "стать при чтобы дело жизнь кто первый очень два день её новый рука даже во со раз где",
        "Анна Иван Мария Пётр Ольга Юрий Елена Артём Нина Фёдор Вера Олег Инна Глеб Зоя Лев",
        "бвгджзклмнпрстфх",
        "аеио",
        " ",
        ".",
        ("Сообщение и вложения конфиденциальны. ", " Все права защищены. Условия на сайте."),
    ),
    _Script(
        3,
        "και το να του η της με που την από για είναι στο ένα θα τα οι τον των δεν σε ότι στη "
        "αυτό μια τους στην κατά όπως μας ο ως μετά αλλά έχει μου πολύ αν πριν όταν πως χρόνια "
        "μέρα κόσμος ζωή σπίτι νέα πόλη ώρα φορά άνθρωπος δρόμος χέρι νερό μάτια",
        "Άννα Γιώργος Μαρία Νίκος Ελένη Πέτρος Σοφία Κώστας Ζωή Φώτης Ρένα Μάνος",
        "βγδζθκλμνξπρστφχ",
        "αεηο",
        " ",
        ".",
        ("Το μήνυμα είναι εμπιστευτικό. ", " Με επιφύλαξη παντός δικαιώματος."),
    ),
    _Script(
        5,
        "的 一 是 不 了 人 我 在 有 他 这 中 大 来 上 国 个 到 说 们 为 子 和 你 地 出 道 也 时 年 "
        "得 就 那 要 下 以 生 会 自 着 去 之 过 家 学 对 可 她 里 后 小 么 心 多 天 而 能 好 都 然 "
        "日本 東京 世界 時間 問題 我们 中国 工作 学生 生活 城市 历史 文化 经济 技术",
        "王伟 李娜 张敏 刘洋 陈静 杨帆 赵磊 黄丽 周杰 吴刚 徐晶 孙涛",
        "山水火木金土石田风雨云雪花草竹梅",
        "明华强英",
        "",
        "。",
        ("本邮件内容保密。", "版权所有，翻印必究。"),
    ),
    _Script(
        3,
        "في من على أن إلى كان هذا التي الذي عن مع ما لا هو هي كل بعد قبل بين حتى عند غير قد لم "
        "إذا ثم أو يوم عام وقت بيت مدينة كتاب رجل عمل حياة عالم طريق ماء باب يد عين صوت",
        "محمد فاطمة أحمد مريم علي زينب حسن ليلى عمر سارة يوسف نور",
        "بتثجحدرزسشصضطعفق",
        "اوين",
        " ",
        ".",
        ("هذه الرسالة سرية. ", " جميع الحقوق محفوظة."),
    ),
    _Script(
        2,
        "के में है की से और का को पर यह भी एक नहीं कि हो था ने तो इस कर लिए साथ जो वह अपने बाद "
        "दिन समय लोग काम घर साल बात देश जीवन पानी हाथ शहर किताब सड़क नया बड़ा छोटा पहला दूसरा",
        "अनीता राहुल प्रिया अमित सुनीता विजय पूजा संजय मीना रवि गीता मोहन",
        "कखगचजतदनपबमरलवसह",
        "ािीो",
        " ",
        "।",
        ("यह संदेश गोपनीय है। ", " सर्वाधिकार सुरक्षित।"),
    ),
    _Script(
        2,
        "so lol \U0001f602 the \U0001f389 \u2764\ufe0f love you \U0001f44d this "
        "\U0001f44d\U0001f3fd is \U0001f468\u200d\U0001f469\u200d\U0001f467 happy "
        "\U0001f1eb\U0001f1f7 day \U0001f525 to \U0001f64f go \U0001f680 best \U0001f60d "
        "ever \U0001f937\u200d\u2642\ufe0f see \u2728 my",
        "@kim\U0001f308 @lou\U0001f436 @max\U0001f98a @zoe\U0001f33b @sam\u26a1 @joy\U0001f340",
        "bdfgklmnprstvzjw",
        "aeiu",
        " ",
        "!",
        ("\U0001f514 follow me \U0001f514 ", " \U0001f447 link in bio \U0001f447"),
    ),
)

_SYLLABLES: Final = 64  # 16 onsets x 4 nuclei
_PAIRS: Final = _SYLLABLES**2
_WORDS: Final = 2_048  # per script: the listed ones, then coined ones
_NAMES: Final = 16
_PER_SCRIPT: Final = _WORDS + _NAMES + _PAIRS + 2
_FIRST_NAME: Final = _WORDS
_FIRST_PAIR: Final = _WORDS + _NAMES
_BEFORE: Final = _FIRST_PAIR + _PAIRS
_AFTER: Final = _BEFORE + 1

# Each vocabulary entry is stored with every ending it can have, so that a text is the plain
# concatenation of its tokens and one ``take`` writes a whole block.
_SPACE, _NOTHING, _STOP, _STOP_SPACE, _CAPITAL = range(5)


class _Vocabulary(NamedTuple):
    tokens: pa.Array  # one block of len(_SCRIPTS) * _PER_SCRIPT strings for each ending and case
    zipf: _Ints  # 65,536 ranks, drawn uniformly gives word k with weight 1 / (k + 3)
    letters: npt.NDArray[np.uint32]  # 20 per script, all different: what edits put in
    blanks: pa.Array


_LETTERS_PER_SCRIPT: Final = 20


@functools.cache
def _vocabulary() -> _Vocabulary:
    entries: list[str] = []
    stops: list[str] = []
    spaces: list[str] = []
    letters: list[str] = []
    for script in _SCRIPTS:
        syllables = [onset + nucleus for onset in script.onsets for nucleus in script.nuclei]
        pairs = [first + second for first in syllables for second in syllables]
        # 1,259 is prime to 4,096: walks over all pairs in an order that does not look sorted.
        coined = (pairs[1_259 * k % _PAIRS] for k in range(_WORDS))
        listed = script.words.split()
        words = listed + [next(coined) for _ in range(_WORDS - len(listed))]
        given = script.given.split()
        names = [given[k % len(given)] for k in range(_NAMES)]
        entries += words + names + pairs + list(script.boilerplate)
        stops += [script.stop] * _PER_SCRIPT
        spaces += [script.space] * _PER_SCRIPT
        letters += script.onsets + script.nuclei
    ending = {
        _SPACE: pa.array(spaces),
        _NOTHING: pa.array([""] * len(entries)),
        _STOP: pa.array(stops),
        _STOP_SPACE: pa.array([stop + space for stop, space in zip(stops, spaces, strict=True)]),
    }
    capitals = [entry[:1].upper() + entry[1:] for entry in entries]
    forms = [
        pc.binary_join_element_wise(body, ending[end], "")
        for body in (pa.array(entries), pa.array(capitals))
        for end in sorted(ending)
    ]
    weights = [(1 << 32) // (k + 3) for k in range(_WORDS)]
    bounds = np.cumsum(np.array(weights, np.int64)) * 65_536 // sum(weights)
    zipf = np.searchsorted(bounds, np.arange(65_536), side="right").astype(np.int64)
    return _Vocabulary(
        pa.concat_arrays(forms),
        zipf,
        np.array([ord(letter) for letter in letters], np.uint32),
        pa.array(_BLANKS, pa.string()),
    )


# --- random numbers ------------------------------------------------------------------------------
# SplitMix64 by counter: NumPy's generators promise neither random access nor the same stream in the
# next version.

_GOLDEN: Final = 0x9E3779B97F4A7C15


def _mix(x: _Hashes) -> _Hashes:
    """SplitMix64's finaliser, in place on the array given."""
    x ^= x >> np.uint64(30)
    x *= np.uint64(0xBF58476D1CE4E5B9)
    x ^= x >> np.uint64(27)
    x *= np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    return x


def _key(seed: int, stream: int) -> int:
    start = (seed * 0xD1342543DE82EF95 + stream * 0xA0761D6478BD642F) & 0xFFFFFFFFFFFFFFFF
    return int(_mix(np.array([start], np.uint64))[0])


def _draw(key: int | _Hashes, counter: _Ints) -> _Hashes:
    """One 64-bit hash for each counter."""
    start = key if isinstance(key, np.ndarray) else np.uint64(key)
    return _mix(start + counter.view(np.uint64) * np.uint64(_GOLDEN))


def _below(hashes: _Hashes, n: int | _Ints) -> _Ints:
    """A number in ``0 <= x < n`` from the upper 31 bits of each hash; ``n`` is less than 2**31."""
    return ((hashes >> np.uint64(33)).astype(np.int64) * n) >> 31


# --- layout --------------------------------------------------------------------------------------


class _Layout(NamedTuple):
    """The slot of the groups in which each row of the corpus stands, by a stride modulo rows."""

    rows: int
    stride: int
    shift: int
    kinds: _Ints  # of the slots of one group
    entities: _Ints  # number of the entity within its group
    originals: _Ints  # slot of the cluster's first member within the group

    @classmethod
    def of(cls, rows: int, seed: int) -> _Layout:
        kinds: list[int] = []
        entities: list[int] = []
        originals: list[int] = []
        for entity, cluster in enumerate(_GROUP):
            first = len(kinds)
            kinds += [_LETTERS[letter] for letter in cluster]
            entities += [entity] * len(cluster)
            originals += [first] * len(cluster)
        # Next to the golden section of the rows neighbours in a group land far apart.
        stride = max(1, rows * 618_034 // 1_000_000)
        while math.gcd(stride, rows) != 1:
            stride += 1
        shift = _key(seed, 0) % max(rows, 1)
        as_array = functools.partial(np.array, dtype=np.int64)
        return cls(rows, stride, shift, as_array(kinds), as_array(entities), as_array(originals))

    def slots(self, row: _Ints) -> _Ints:
        # The remainder is taken of the product's exact value: rows < 2**31.
        return (row * self.stride + self.shift) % self.rows

    def row(self, slot: _Ints) -> _Ints:
        inverse = pow(self.stride, -1, self.rows) if self.rows > 1 else 0
        return (slot - self.shift) % self.rows * inverse % self.rows


# --- texts ---------------------------------------------------------------------------------------

# Streams of random numbers, one for each choice.
_SCRIPT, _STYLE, _LENGTH, _WORD, _PLACE, _GIVEN, _SHUFFLE, _EDIT, _SOURCE, _BLANK = range(1, 11)

_SCRIPT_OF: Final = np.repeat(np.arange(len(_SCRIPTS)), [script.share for script in _SCRIPTS])


class _Writer:
    """Texts of entities, for one seed."""

    def __init__(self, seed: int, entities: int) -> None:
        self.keys = {stream: _key(seed, stream) for stream in range(1, 11)}
        # Two pairs of syllables hold the numbers of 2**24 entities, three those of 2**36.
        self.halves = 2 if entities <= _PAIRS**2 else 3

    def draw(self, stream: int, counter: _Ints) -> _Hashes:
        return _draw(self.keys[stream], counter)

    def texts(self, entity: _Ints, row: _Ints, kind: _Ints) -> pa.Array:
        """One text for each row; null rows hold an empty text here."""
        text = self._base(entity, kind)
        edited = np.flatnonzero(kind == _EDITED)
        blank = np.flatnonzero(kind == _EMPTY)
        changed = self._edit(text.take(pa.array(edited)), entity[edited], row[edited])
        blanks = _vocabulary().blanks.take(
            pa.array(_below(self.draw(_BLANK, row[blank]), len(_BLANKS)))
        )
        index = np.arange(len(row))
        index[edited] = len(row) + np.arange(len(edited))
        index[blank] = len(row) + len(edited) + np.arange(len(blank))
        return pa.concat_arrays([text, changed, blanks]).take(pa.array(index))

    def _script(self, entity: _Ints) -> _Ints:
        chosen: _Ints = _SCRIPT_OF[_below(self.draw(_SCRIPT, entity), len(_SCRIPT_OF))]
        return chosen

    def _coined(self, entity: _Ints) -> _Ints:
        """The entity's number as ``(entities, halves)`` pairs of syllables: no two texts are equal.

        The number is scrambled by steps that can be undone, so neighbours look nothing alike.
        """
        bits = 12 * self.halves
        mask = np.uint64((1 << bits) - 1)
        half = np.uint64(bits // 2)
        x = entity.astype(np.uint64)
        for factor in (0x2C1B3C6D5, 0x297A2D39F):
            x ^= x >> half
            x = (x * np.uint64(factor)) & mask
        x ^= x >> half
        shifts = np.uint64(12) * np.arange(self.halves, dtype=np.uint64)
        return ((x[:, None] >> shifts) & np.uint64(_PAIRS - 1)).astype(np.int64)

    def _base(self, entity: _Ints, kind: _Ints) -> pa.Array:
        """Names, titles and paragraphs, framed by boilerplate or with words shuffled where due."""
        style = _below(self.draw(_STYLE, entity), 10)  # 0-4 a name, 5-7 a title, 8-9 a paragraph
        length = self.draw(_LENGTH, entity)
        words = np.where(style < 5, 1, np.where(style < 8, 2 + _below(length, 6), 0))
        words = np.where(style >= 8, 20 + _below(length, 121), words)
        # Boilerplate makes different texts alike; enough words of their own keep them apart.
        framed = kind == _BOILERPLATE
        words[framed] += 6
        count = words + self.halves + 2 * framed
        count[(kind == _EMPTY) | (kind == _NULL)] = 0

        ends = np.cumsum(count)
        starts = ends - count
        rows = np.repeat(np.arange(len(entity)), count)
        place = np.arange(len(rows)) - starts[rows]

        word_keys = self.draw(_WORD, entity)
        hashes = _draw(word_keys[rows], place)
        token = _vocabulary().zipf[hashes >> np.uint64(48)]
        names = np.flatnonzero((style < 5) & ~framed & (count > 0))
        token[starts[names]] = _FIRST_NAME + _below(self.draw(_GIVEN, entity[names]), _NAMES)

        # The coined word: after the given name, anywhere in a title or a paragraph.
        texts = np.flatnonzero(count)
        coined_at = _below(self.draw(_PLACE, entity), words + 1)
        coined_at[style < 5] = 1
        first = (starts + coined_at + framed)[texts]
        coined = self._coined(entity[texts])
        half = np.zeros(len(rows), np.int64)  # 0: a whole word, k: the k-th part of the coined word
        for k in range(self.halves):
            token[first + k] = _FIRST_PAIR + coined[:, k]
            half[first + k] = k + 1
        token[starts[framed]] = _BEFORE
        token[ends[framed] - 1] = _AFTER
        token += (self._script(entity) * _PER_SCRIPT)[rows]

        shuffled = np.flatnonzero(kind == _SHUFFLED)
        if len(shuffled):
            moved = self._shuffled(shuffled, starts, count, half, hashes)
            source = np.arange(len(rows))
            source[np.sort(moved)] = moved
            token, half = token[source], half[source]

        # Sentences of 7 to 14 words in a paragraph; capitals after a stop and on the coined word.
        long = (style >= 8)[rows]
        inside = (half > 0) & (half < self.halves)
        sentence = 7 + (length & np.uint64(7)).astype(np.int64)
        stop = long & ~inside & ((place + 1) % sentence[rows] == 0)
        last = np.zeros(len(rows), np.bool_)
        last[ends[texts] - 1] = True
        first_of_text = np.zeros(len(rows), np.bool_)
        first_of_text[starts[texts]] = True
        capital = first_of_text | (half == 1)
        capital[1:] |= stop[:-1]
        capital &= half <= 1
        # The boilerplate brings its own blanks: no space before it, none within it.
        bare = inside | last
        bare[starts[framed]] = True
        bare[ends[framed] - 2] = True
        form = np.where(stop, _STOP_SPACE, _SPACE)
        form[bare] = _NOTHING
        form[last & long & ~framed[rows]] = _STOP
        form += _CAPITAL * capital
        return _concatenated(form * (len(_SCRIPTS) * _PER_SCRIPT) + token, starts, ends)

    def _shuffled(
        self, shuffled: _Ints, starts: _Ints, count: _Ints, half: _Ints, hashes: _Hashes
    ) -> _Ints:
        """Positions of the tokens of the rows given, words in another order within each row."""
        inner = np.repeat(np.arange(len(shuffled)), count[shuffled])
        ends = np.cumsum(count[shuffled])
        place = np.arange(len(inner)) - (ends - count[shuffled])[inner]
        position = starts[shuffled][inner] + place
        order = self.draw(_SHUFFLE, hashes[position].view(np.int64)) >> np.uint64(1)
        # The parts of a coined word move together; the first word goes last, so something moves.
        parts = half[position]
        for k in range(2, self.halves + 1):
            at = np.flatnonzero(parts == k)
            order[at] = order[at - 1]
        last = np.uint64(0xFFFFFFFFFFFFFFFF)
        leading = (place == 0) | ((parts > 1) & (place < parts))
        order[leading] = last
        moved: _Ints = position[np.lexsort((place, order, inner))]
        return moved

    def _edit(self, text: pa.Array, entity: _Ints, row: _Ints) -> pa.Array:
        """Texts with one to five per cent of their characters replaced, taken out or put in.

        A text loses characters or gains some, never both: the result always differs.
        """
        if len(text) == 0:
            return text
        codes, starts, length = _decoded(text)
        hashes = self.draw(_EDIT, row)
        edits = np.maximum(1, length * (1 + _below(hashes, 5)) // 100)
        grows = (hashes & np.uint64(1)).astype(np.bool_)
        rows = np.repeat(np.arange(len(text)), edits)
        number = np.arange(len(rows)) - (np.cumsum(edits) - edits)[rows]
        chosen = _draw(hashes[rows], number + 1)
        at = starts[rows] + _below(chosen, length[rows])
        replaces = (chosen & np.uint64(1)).astype(np.bool_)

        letters = _vocabulary().letters
        script = self._script(entity)[rows]
        letter = (chosen >> np.uint64(1) & np.uint64(0xFFFF)).astype(np.int64) % _LETTERS_PER_SCRIPT
        base = script * _LETTERS_PER_SCRIPT
        same = letters[base + letter] == codes[at]
        replacement = letters[base + (letter + same) % _LETTERS_PER_SCRIPT]

        copies = np.ones(len(codes), np.int64)
        copies[at[~replaces]] = np.where(grows[rows[~replaces]], 2, 0)
        codes = codes.copy()
        codes[at[replaces]] = replacement[replaces]
        out = np.repeat(codes, copies)
        # What was put in stands before the character it doubled, as a letter of the script.
        before = np.cumsum(copies) - copies
        doubled = ~replaces & (copies[at] == 2)
        out[before[at[doubled]]] = replacement[doubled]
        ends = np.concatenate([[0], np.cumsum(copies)])[starts + length]
        return _encoded(out, ends)


def _concatenated(token: _Ints, starts: _Ints, ends: _Ints) -> pa.Array:
    """Texts of consecutive tokens: their characters in order, cut at the texts' ends."""
    taken = _vocabulary().tokens.take(pa.array(token))
    _, offsets, data = taken.buffers()
    cuts = np.frombuffer(offsets, np.int32)
    new = np.concatenate([cuts[starts[:1]], cuts[ends]])
    return pa.StringArray.from_buffers(len(starts), pa.py_buffer(new), data)


def _decoded(text: pa.Array) -> tuple[npt.NDArray[np.uint32], _Ints, _Ints]:
    """Code points of the texts one after another, the start of each and its length."""
    codes = np.frombuffer("".join(text.to_pylist()).encode("utf-32-le"), np.uint32)
    length = pc.utf8_length(text).to_numpy().astype(np.int64)
    return codes, np.cumsum(length) - length, length


def _encoded(codes: npt.NDArray[np.uint32], ends: _Ints) -> pa.Array:
    """Texts that end at the given code points."""
    data = codes.tobytes().decode("utf-32-le").encode("utf-8")
    width = 1 + (codes >= 0x80) + (codes >= 0x800).astype(np.int64) + (codes >= 0x10000)
    offsets = np.concatenate([[0], np.cumsum(width)])[np.concatenate([[0], ends])]
    return pa.StringArray.from_buffers(
        len(ends), pa.py_buffer(offsets.astype(np.int32)), pa.py_buffer(data)
    )


# --- the job -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sample:
    """What :func:`sample` wrote.

    Attributes
    ----------
    path, truth : pathlib.Path
        The corpus and the file that says which rows copy which.
    rows : int
    kinds : dict of str to int
        Number of rows of each kind, in the order of :data:`KINDS`.
    seconds : float
        Time taken.
    """

    path: Path
    truth: Path
    rows: int
    kinds: dict[str, int]
    seconds: float


def sample(
    to: str | os.PathLike[str], *, rows: int, seed: int = 0, overwrite: bool = False
) -> Sample:
    """Write a synthetic corpus with known duplicates.

    Parameters
    ----------
    to : path
        The corpus, in the format its extension names
        (see :class:`~resemblance_io.sinks.OutputFile`); its truth goes beside it as
        ``<stem>.truth.parquet``.
    rows : int
        Number of rows, less than 2**31. Memory does not depend on it.
    seed : int, default 0
        Another seed, another corpus. The same arguments give the same rows on every platform.
    overwrite : bool, default False
        Replace files that are there already; otherwise they are an error.

    Returns
    -------
    Sample

    Notes
    -----
    The corpus has the columns ``id`` (the row number), ``text`` and ``source``. Half of the texts
    are names, three in ten titles, two in ten paragraphs with words at Zipf's frequencies, in Latin
    with diacritics, Cyrillic, Greek, Chinese characters, Arabic, Devanagari, or with emoji.

    The truth has one row for each row of the corpus: ``row``, ``cluster`` (the row of the cluster's
    original; the row itself where there is no other member) and ``kind``:

    ``unique``
        Different from every other text.
    ``original``, ``exact``, ``edited``, ``shuffled``
        A text, its exact copies, its copies with one to five per cent of the characters edited (at
        least one), and its copies with the words in another order.
    ``boilerplate``
        Different texts within the same few opening and closing sentences: not duplicates.
    ``empty``, ``null``
        Blank and missing texts: not duplicates of one another.

    Raises
    ------
    InputError
        Negative or too many ``rows``, a negative seed, an unknown extension, or a file that is
        there already while ``overwrite`` is false.
    """
    begin = time.perf_counter()
    path = Path(to)
    truth_path = path.with_name(path.stem + ".truth.parquet")
    if not 0 <= rows < 2**31:
        raise InputError(f"rows must be from 0 to {2**31 - 1:,}, not {rows:,}")
    if seed < 0:
        raise InputError(f"seed must not be negative, and is {seed}")
    counts = np.zeros(len(KINDS), np.int64)
    # Closed in the reverse order: the truth is there before the corpus is.
    with (
        OutputFile(path, SCHEMA, overwrite=overwrite) as corpus,
        OutputFile(truth_path, TRUTH_SCHEMA, overwrite=overwrite) as truth,
    ):
        for texts, labels, kind in _blocks(rows, seed):
            corpus.write(texts)
            truth.write(labels)
            counts += np.bincount(kind, minlength=len(KINDS))
    kinds = dict(zip(KINDS, counts.tolist(), strict=True))
    return Sample(path, truth_path, rows, kinds, time.perf_counter() - begin)


def _blocks(rows: int, seed: int) -> Iterator[tuple[pa.RecordBatch, pa.RecordBatch, _Ints]]:
    """The corpus and its truth block by block, and the kind of each row."""
    layout = _Layout.of(rows, seed)
    group = len(layout.kinds)
    texts = _Writer(seed, (rows // group + 1) * len(_GROUP))
    names = pa.array(KINDS, pa.string())
    sources = pa.array(SOURCES, pa.string())
    for start in range(0, rows, BLOCK_ROWS):
        row = np.arange(start, min(start + BLOCK_ROWS, rows))
        slot = layout.slots(row)
        within = slot % group
        kind = layout.kinds[within]
        entity = slot // group * len(_GROUP) + layout.entities[within]
        cluster = layout.row(slot - within + layout.originals[within])
        text = texts.texts(entity, row, kind)
        text = pc.if_else(pa.array(kind == _NULL), None, text)
        source = sources.take(pa.array(_below(texts.draw(_SOURCE, row), len(SOURCES))))
        yield (
            pa.record_batch([pa.array(row), text, source], schema=SCHEMA),
            pa.record_batch(
                [pa.array(row), pa.array(cluster), names.take(pa.array(kind))], schema=TRUTH_SCHEMA
            ),
            kind,
        )
