"""The words of the class report."""

from __future__ import annotations

from flashcourse.words import Text

WORDS = {
    "title": Text("Class report", "班级报告"),
    "handed_in": Text("handed in", "已提交"),
    "of": Text("of {}", "共 {} 人"),
    "full": Text("full marks", "满分"),
    "median": Text("median of {:g}", "中位数（满分 {:g}）"),
    "unfinished": Text("not finished", "没写完"),
    "failed": Text("raised an error or were stopped", "报错或被中止"),
    "look": Text("to look at", "需要人看"),
    "marks": Text("Marks", "分数分布"),
    "marks_note": Text(
        "Students by percent of the points. Out of {max:g}: mean {mean:.1f}; half of the class has "
        "{low:.1f} to {high:.1f}.",
        "横轴是得分百分比，柱上是人数。满分 {max:g}：平均 {mean:.1f}，一半学生在 {low:.1f} 到 "
        "{high:.1f} 之间。",
    ),
    "success": Text("Exercise by exercise", "逐题情况"),
    "exercise": Text("Exercise", "题目"),
    "points": Text("Points", "分值"),
    "average": Text("Average", "平均得分率"),
    "how": Text("How many students", "学生人数"),
    "questions": Text("To take up in class", "课上可以讨论"),
    "ask": Text("{} of {} students are unsure here:", "{} / {} 名学生在这里没想清楚："),
    "ask_one": Text("1 of {} students is unsure here:", "1 / {} 名学生在这里没想清楚："),
    "weakest": Text(
        "“{label}” got {percent:.0f} % of its points, the least of all that were begun.",
        "“{label}”的得分率是 {percent:.0f} %，在做了的题中最低。",
    ),
    "misconceptions": Text("Misconceptions", "常见误解"),
    "students": Text("{} students · {}", "{} 名学生 · {}"),
    "one_student": Text("1 student · {}", "1 名学生 · {}"),
    "example": Text("One of them", "其中一例"),
    "code": Text("their line", "代码"),
    "hint": Text("Hint they got", "得到的提示"),
    "none": Text("None was recognised.", "没有识别出误解。"),
    "eyes": Text("Need a human eye", "需要人看的提交"),
    "eyes_none": Text("Nobody's.", "没有。"),
    "eyes_note": Text(
        "A coloured edge: look before you return the marks.", "左侧有色条的：请在公布分数之前查看。"
    ),
    "waiting": Text(
        "Answers in words that wait to be marked (in the formgrader): {}.",
        "等待人工评分的文字回答（在 formgrader 中）：{}。",
    ),
    "student": Text("Student", "学生"),
    "why": Text("Why", "原因"),
    "missing": Text("Nothing that could be graded", "没有可评分的提交"),
    "left_out": Text(
        "Not in the class list, so not in moodle.csv and canvas.csv: {}",
        "不在名单里，所以 moodle.csv 和 canvas.csv 里没有：{}",
    ),
    "no_list": Text(
        "There is no students.csv: Moodle and Canvas may not know whose these marks are.",
        "没有 students.csv：Moodle 和 Canvas 可能认不出这些分数是谁的。",
    ),
    "everybody": Text("Everybody", "全班"),
    "total": Text("Total", "总分"),
    "outcome": Text("Outcome", "结果"),
    "anonymous": Text("Names are left out.", "已隐去姓名。"),
}
